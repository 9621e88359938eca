// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "backend.h"

namespace mge::virtual_gpu {
namespace {

constexpr uint64_t kPinnedAlignment = 4096;

// The handle of a slab: the slab, and the action that releases it after a fence, allocated in advance because releasing must
// not fail.
struct Held {
  mge_slab slab;
  software::Event::Actions release;
};

Result AcquirePinned(Device& device, uint64_t bytes, void** out) {
  if (Result r = device.gpu().CountAllocation(); !r.ok()) return r;
  uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
  *out = rounded < bytes ? nullptr : std::aligned_alloc(kPinnedAlignment, rounded);
  if (*out) return {};
  return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of host memory"};
}

}  // namespace

Result Memory::Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  bool pinned = memory_class == MGE_MEMORY_PINNED;
  if (!pinned && memory_class != MGE_MEMORY_DEVICE) {
    return {MGE_UNIMPLEMENTED, "memory class " + std::to_string(memory_class) + " does not exist"};
  }
  const uint64_t most = CurrentOptions().max_allocation;
  if (!pinned && most > 0 && bytes > most) {
    return {MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes in one allocation; the limit is " +
                                        std::to_string(most) + " (virtual.max_allocation_bytes)"};
  }
  auto held = std::make_unique<Held>();
  held->release.emplace_back(0, [&device, held = held.get()] { Release(device, held->slab); });
  void* address = nullptr;
  Result r = pinned ? AcquirePinned(device, bytes, &address) : device.gpu().Allocate(bytes, &address);
  if (!r.ok()) return r;
  held->slab = MakeSlab(memory_class, bytes, address, pinned ? address : nullptr, held.get());
  *out = held.release()->slab;
  return {};
}

void Memory::Release(Device& device, const mge_slab& slab) {
  void* const address = slab.address;
  const int32_t memory_class = slab.memory_class;
  delete static_cast<Held*>(slab.handle);  // `slab` may be a member of it
  if (memory_class == MGE_MEMORY_PINNED) {
    std::free(address);
  } else {
    device.gpu().memory().Free(address);
  }
}

void Memory::ReleaseAfter(Device& device, const mge_slab& slab, const mge_fence_point& last_use) {
  Fence* fence = FenceOf<Fence>(&last_use);
  if (!fence) return Release(device, slab);
  fence->event()->Then(last_use.value, std::move(static_cast<Held*>(slab.handle)->release));
}

MemoryAmount Memory::Info(Device& device) {
  const software::Memory& memory = device.gpu().memory();
  return {.free_bytes = memory.capacity() - memory.used(), .total_bytes = memory.capacity()};
}

uint64_t Memory::RangeGranularity(Device&) { return software::Memory::kGranularity; }

Result Memory::RangeReserve(Device& device, uint64_t bytes, mge_slab* out) {
  void* address = nullptr;
  if (Result r = device.Health(); !r.ok()) return r;
  if (Result r = device.gpu().memory().Reserve(bytes, &address); !r.ok()) return r;
  *out = MakeSlab(MGE_MEMORY_DEVICE, bytes, address, nullptr);
  return {};
}

void Memory::RangeRelease(Device& device, const mge_slab& range) { device.gpu().memory().Free(range.address); }

Result Memory::RangeCommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  return device.gpu().Commit(range.address, offset, bytes);
}

void Memory::RangeDecommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  device.gpu().memory().Decommit(range.address, offset, bytes);
}

}  // namespace mge::virtual_gpu
