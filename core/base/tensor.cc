// SPDX-License-Identifier: Apache-2.0
#include "core/base/tensor.h"

#include <cstdlib>
#include <new>

#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/base/narrow.h"
#include "fmt/format.h"

namespace mge {
namespace {

class Unlimited : public HostAllocator {
 public:
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    size_t rounded = (static_cast<size_t>(bytes) + 63) / 64 * 64;
    void* p = std::aligned_alloc(64, rounded ? rounded : 64);
    if (!p) return Fail(errors::kOutOfMemory, fmt::format("the system has no memory for {} bytes", bytes));
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(p), [](std::byte* b) { std::free(b); });
  }
};

}  // namespace

HostAllocator& UnlimitedHostAllocator() {
  static Unlimited& allocator = *new Unlimited;  // never destroyed: threads may use it while the process exits
  return allocator;
}

absl::StatusOr<Tensor> Tensor::Create(DType dtype, Shape shape, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(dtype, shape));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, allocator.Allocate(bytes));
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = Elements(shape);
  t.shape_ = std::move(shape);
  t.data_ = memory.get();
  if (dtype == DType::kString) {
    auto* strings = reinterpret_cast<std::string*>(memory.get());
    int64_t n = t.elements_;
    for (int64_t i = 0; i < n; ++i) new (strings + i) std::string();
    t.owner_ = std::shared_ptr<const void>(strings, [memory, strings, n](const void*) {
      for (int64_t i = 0; i < n; ++i) std::destroy_at(strings + i);
    });
  } else {
    t.owner_ = std::move(memory);
  }
  return t;
}

Tensor Tensor::View(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner,
                    const DeviceMemory* memory) {
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = Elements(shape);
  t.shape_ = std::move(shape);
  t.data_ = const_cast<void*>(data);
  t.owner_ = std::move(owner);
  t.device_memory_ = memory;
  return t;
}

Tensor Tensor::Lazy(DType dtype, Shape shape, std::shared_ptr<LazyBytes> bytes) {
  MGE_CHECK(dtype != DType::kString && bytes->bytes() == Elements(shape) * ElementBytes(dtype));
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = Elements(shape);
  t.shape_ = std::move(shape);
  t.lazy_ = bytes.get();
  t.owner_ = std::move(bytes);
  return t;
}

const void* Tensor::PinnedData() const { return lazy_->Pin(); }

absl::StatusOr<Tensor> Tensor::Held() const {
  if (!lazy_) return *this;
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const std::byte> memory, lazy_->Hold());
  const void* data = memory.get();
  return View(dtype_, shape_, data, std::move(memory));
}

Tensor Tensor::Reshaped(Shape shape) const {
  MGE_CHECK(Elements(shape) == elements_);
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

std::vector<int64_t> Tensor::ToInts() const {
  std::vector<int64_t> out;
  auto copy = [&](auto tag) {
    using T = typename decltype(tag)::type;
    out.assign(Data<T>().begin(), Data<T>().end());
  };
  if (kNarrowInteger.Contains(dtype_)) {
    for (uint8_t element : Data<uint8_t>()) out.push_back(static_cast<int64_t>(NarrowToFloat(dtype_, element)));
  } else if (!DispatchInteger(dtype_, copy)) {
    internal::DispatchImpl<decltype(copy)&, bool>(dtype_, copy);
  }
  return out;
}

}  // namespace mge
