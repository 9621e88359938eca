// SPDX-License-Identifier: Apache-2.0
// Memory for the bytes of constants while kernels pack them. It is used again, so that its pages are made once.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/base/tensor.h"
#include "fmt/format.h"

namespace mge {

// Thread-safe.
class SourceBuffers {
 public:
  // Calls `use` with the bytes of a constant. Fails as reading them or `use` does, and with kOutOfMemory.
  template <typename Use>
  absl::Status With(const Tensor& constant, Use use) {
    if (!constant.lazy()) return use(constant.data());
    const auto bytes = static_cast<size_t>(constant.bytes());
    Buffer buffer = Take(bytes);
    if (!buffer.memory) return Fail(errors::kOutOfMemory, fmt::format("the system has no memory for {} bytes", bytes));
    absl::Status status = constant.lazy()->ReadInto({buffer.memory.get(), bytes});
    if (status.ok()) status = use(buffer.memory.get());
    if (buffer.bytes <= kMaxKept) {
      std::lock_guard lock(mutex_);
      free_.push_back(std::move(buffer));
    }
    return status;
  }

 private:
  static constexpr size_t kMaxKept = 8 << 20;  // larger ones would add to the peak of the memory

  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
  };

  Buffer Take(size_t bytes) {
    Buffer buffer;
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (buffer.bytes < bytes) buffer = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]), bytes};
    return buffer;
  }

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

}  // namespace mge
