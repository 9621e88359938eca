// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/host_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "core/plan/plan.h"

namespace mge {
namespace {

constexpr int64_t kBlockBytes = 32 << 20;

// Host allocators align to kBufferAlignment only.
int64_t AlignmentOf(const Device& device) {
  return HasQueues(device) ? kBufferAlignment : std::max<int64_t>(kBufferAlignment, device.BufferAlignment());
}

// Creates a tensor of bytes whose address is aligned.
absl::StatusOr<Tensor> CreateAligned(int64_t bytes, Device& device) {
  const int64_t alignment = AlignmentOf(device);
  MGE_ASSIGN_OR_RETURN(Tensor whole,
                       Tensor::Create(DType::kU8, {bytes + alignment - kBufferAlignment}, device.host_allocator()));
  const auto address = reinterpret_cast<uintptr_t>(whole.data()), unit = static_cast<uintptr_t>(alignment);
  const uintptr_t skip = (unit - address % unit) % unit;
  return whole.Within(DType::kU8, {bytes}, static_cast<const std::byte*>(whole.data()) + skip);
}

}  // namespace

int64_t HostBlocks::Rounded(int64_t bytes) const {
  const int64_t alignment = AlignmentOf(device_);
  return (bytes + alignment - 1) / alignment * alignment;
}

absl::StatusOr<Tensor> HostBlocks::Allocate(int64_t bytes) {
  const int64_t rounded = Rounded(bytes);
  if (block_.bytes() - used_ < rounded) {
    block_ = {};
    used_ = 0;
    const int64_t wanted = std::max(rounded, std::min(kBlockBytes, expected_));
    absl::StatusOr<Tensor> block = CreateAligned(wanted, device_);
    if (!block.ok()) return CreateAligned(bytes, device_);
    block_ = *std::move(block);
    AdviseHugePages(block_.mutable_data(), wanted);
  }
  const Tensor part = block_.Within(DType::kU8, {bytes}, static_cast<const std::byte*>(block_.data()) + used_);
  used_ += rounded;
  expected_ = std::max<int64_t>(0, expected_ - rounded);
  return part;
}

void AdviseHugePages(void* address, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + static_cast<uintptr_t>(bytes)) / page * page;
  if (last > first) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace mge
