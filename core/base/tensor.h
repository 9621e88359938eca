// SPDX-License-Identifier: Apache-2.0
// Dense tensors in host memory, and the sequences and optionals that ONNX builds of them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/base/status.h"

namespace mge {

// Where host memory comes from. The budget of a run binds here: over it, kOverBudget.
class HostAllocator {
 public:
  virtual ~HostAllocator() = default;
  // 64-byte aligned, uninitialised; the deleter gives it back. `bytes` may be 0.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) = 0;
};

// The allocator without a limit (it still answers kOutOfMemory rather than throw).
HostAllocator& UnlimitedHostAllocator();

// Row-major elements in host memory, shared: copies of a Tensor refer to the same bytes.
// A string tensor's elements are std::string objects.
class Tensor {
 public:
  Tensor() = default;

  // Uninitialised (strings: empty). Fails on overflow and on memory.
  static absl::StatusOr<Tensor> Create(DType dtype, Shape shape,
                                       HostAllocator& allocator = UnlimitedHostAllocator());

  // A view of bytes that `owner` keeps alive (nullptr: the caller does). `data` is suitably aligned.
  static Tensor View(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);

  // A small one with these values, of unlimited memory; std::bad_alloc if there is none.
  template <typename T>
  static Tensor Of(Shape shape, std::span<const T> values);
  template <typename T>
  static Tensor Scalar(T value) { return Of<T>({}, std::span<const T>(&value, 1)); }
  template <typename T>
  static Tensor Vector(std::span<const T> values) { return Of<T>({static_cast<int64_t>(values.size())}, values); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * ElementBytes(dtype_); }
  bool defined() const { return dtype_ != DType::kUndefined; }

  const void* data() const { return data_; }
  void* mutable_data() { return data_; }  // for the one who created it, before sharing
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Elements as T, which must be the C++ type of dtype() (std::string for strings).
  template <typename T>
  std::span<const T> Data() const { return {static_cast<const T*>(data_), static_cast<size_t>(elements_)}; }
  template <typename T>
  std::span<T> MutableData() { return {static_cast<T*>(data_), static_cast<size_t>(elements_)}; }

  // The same bytes under another shape with equally many elements.
  Tensor Reshaped(Shape shape) const;

  // Integers (any width, bool too) as int64; for shape arithmetic. Empty for other types.
  std::vector<int64_t> ToInts() const;

 private:
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  int64_t elements_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

template <typename T>
Tensor Tensor::Of(Shape shape, std::span<const T> values) {
  constexpr DType dtype = std::is_same_v<T, std::string> ? DType::kString : kDTypeOf<T>;
  auto tensor = Create(dtype, std::move(shape));
  if (!tensor.ok()) throw std::bad_alloc();
  MGE_CHECK(tensor->elements() == static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor->template MutableData<T>().begin());
  return *std::move(tensor);
}

// What flows along an edge of a graph at run time.
enum class ValueKind { kTensor, kSequence, kOptional, kOptionalSequence };

struct HostValue {
  ValueKind kind = ValueKind::kTensor;
  Tensor tensor;                 // kTensor, kOptional
  std::vector<Tensor> sequence;  // kSequence, kOptionalSequence
  bool present = true;           // kOptional and kOptionalSequence only: false when empty
};

}  // namespace mge
