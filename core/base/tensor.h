// SPDX-License-Identifier: Apache-2.0
// Dense tensors, and ONNX's sequences, optionals and maps of tensors.
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

// An allocator of host memory. An implementation may enforce a memory budget.
class HostAllocator {
 public:
  virtual ~HostAllocator() = default;
  // Returns uninitialised memory, aligned to 64 bytes, which the deleter frees. `bytes` may be 0. Errors: kOutOfMemory, and
  // kOverBudget if the memory would exceed the budget.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) = 0;
};

// Returns the allocator without a budget. It fails with kOutOfMemory and never throws. Thread-safe.
HostAllocator& UnlimitedHostAllocator();

class DeviceMemory;
class LazyBytes;

// A dense row-major tensor. Copies share the same bytes, which live until the last copy is destroyed. The bytes lie in host
// memory unless the tensor has a device memory (core/plugin/device_tensor.h). The elements of a string tensor are
// std::string objects.
class Tensor {
 public:
  Tensor() = default;

  // Creates an uninitialised tensor; strings are empty. Errors: kInvalidTensor on overflow, and those of `allocator`.
  static absl::StatusOr<Tensor> Create(DType dtype, Shape shape, HostAllocator& allocator = UnlimitedHostAllocator());

  // Creates a tensor that refers to `data` in host memory, without a copy. `owner` keeps `data` alive; if it is null, the
  // caller does. `data` must be aligned for the element type. For a part of another tensor use Within().
  static Tensor View(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
    return View(dtype, std::move(shape), data, std::move(owner), nullptr);
  }
  // Creates a tensor in `memory`, which `owner` keeps alive.
  static Tensor View(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner,
                     const DeviceMemory* memory);

  // Creates a tensor whose bytes are produced when they are needed. Its data() pins them (LazyBytes::Pin), which only planning
  // may do; others use Held(). Not for strings.
  static Tensor Lazy(DType dtype, Shape shape, std::shared_ptr<LazyBytes> bytes);

  // Creates a small tensor with these values, not charged to any budget. Throws std::bad_alloc if there is no memory.
  template <typename T>
  static Tensor Of(Shape shape, std::span<const T> values);
  template <typename T>
  static Tensor Scalar(T value) {
    return Of<T>({}, std::span<const T>(&value, 1));
  }
  template <typename T>
  static Tensor Vector(std::span<const T> values) {
    return Of<T>({static_cast<int64_t>(values.size())}, values);
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * ElementBytes(dtype_); }
  bool defined() const { return dtype_ != DType::kUndefined; }

  const void* data() const { return lazy_ ? PinnedData() : data_; }
  void* mutable_data() { return data_; }  // for the creator only, before the tensor is shared
  const std::shared_ptr<const void>& owner() const { return owner_; }
  // Returns nullptr unless the tensor was made by Lazy().
  LazyBytes* lazy() const { return lazy_; }
  // Returns the same tensor with its bytes in memory for as long as the result lives. Errors: those of LazyBytes::Hold().
  absl::StatusOr<Tensor> Held() const;
  // Returns nullptr if the tensor lies in plain host memory.
  const DeviceMemory* device_memory() const { return device_memory_; }

  // Returns the elements as T, which must be the C++ type of dtype() (std::string for strings). This is not checked.
  template <typename T>
  std::span<const T> Data() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<T> MutableData() {
    return {static_cast<T*>(data_), static_cast<size_t>(elements_)};
  }

  // Returns a tensor of another type and shape at `data`, an address within the memory of this one, which it keeps alive.
  Tensor Within(DType dtype, Shape shape, const void* data) const {
    return View(dtype, std::move(shape), data, owner_, device_memory_);
  }
  // Returns a tensor with the same bytes and another shape, which must have the same number of elements.
  Tensor Reshaped(Shape shape) const;

  // Returns the elements of an integer or bool tensor as int64. Returns an empty vector for other types.
  std::vector<int64_t> ToInts() const;

 private:
  const void* PinnedData() const;

  DType dtype_ = DType::kUndefined;
  Shape shape_;
  int64_t elements_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  const DeviceMemory* device_memory_ = nullptr;  // kept alive by owner_
  LazyBytes* lazy_ = nullptr;                    // the object that owner_ owns, if that is a LazyBytes
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

// The kind of a value at run time.
enum class ValueKind { kTensor, kSequence, kOptional, kOptionalSequence, kMap, kMapSequence };

// A value at run time, in host memory.
struct HostValue {
  ValueKind kind = ValueKind::kTensor;
  Tensor tensor;                 // kTensor, kOptional
  std::vector<Tensor> sequence;  // kSequence, kOptionalSequence; kMap and kMapSequence: see below
  bool present = true;           // kOptional and kOptionalSequence only: false when empty
  // A map is a vector of keys, integers or strings, followed by the vector of their values. A sequence of maps holds the two
  // vectors of each map in turn.
};

}  // namespace mge
