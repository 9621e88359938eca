// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "handles.h"

namespace mge::virtual_gpu {
namespace {

using software::Memory;

constexpr uint64_t kPinnedAlignment = 4096;

// The handle of a slab: the slab, and the action that releases it after a fence, allocated in advance because releasing must
// not fail.
struct Held {
  mge_slab slab;
  software::Event::Actions release;
};

void SlabRelease(mge_device* device, const mge_slab* slab) noexcept {
  std::unique_ptr<Held> held(static_cast<Held*>(slab->handle));
  if (slab->memory_class == MGE_MEMORY_PINNED) {
    std::free(slab->address);
  } else {
    device->gpu.memory().Free(slab->address);
  }
}

Result AcquirePinned(mge_device* device, uint64_t bytes, void** out) {
  if (Result r = device->gpu.CountAllocation(); !r.ok()) return r;
  uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
  *out = rounded < bytes ? nullptr : std::aligned_alloc(kPinnedAlignment, rounded);
  if (*out) return {};
  return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of host memory"};
}

mge_code SlabAcquire(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    bool pinned = memory_class == MGE_MEMORY_PINNED;
    if (!pinned && memory_class != MGE_MEMORY_DEVICE) {
      return Report(error, MGE_UNIMPLEMENTED, "memory class " + std::to_string(memory_class) + " does not exist");
    }
    const uint64_t most = CurrentOptions().max_allocation;
    if (!pinned && most > 0 && bytes > most) {
      return Report(error, MGE_RESOURCE_EXHAUSTED,
                    std::to_string(bytes) + " bytes in one allocation; the limit is " + std::to_string(most) +
                        " (virtual.max_allocation)");
    }
    auto held = std::make_unique<Held>();
    held->release.emplace_back(0, [device, held = held.get()] { SlabRelease(device, &held->slab); });
    void* address = nullptr;
    Result r = pinned ? AcquirePinned(device, bytes, &address) : device->gpu.Allocate(bytes, &address);
    if (!r.ok()) return Report(error, r);
    held->slab = MakeSlab(memory_class, bytes, address, pinned ? address : nullptr, held.get());
    Fill(out, held.release()->slab);
    return MGE_OK;
  });
}

void SlabReleaseAfter(mge_device* device, const mge_slab* slab, const mge_fence_point* last_use) noexcept {
  if (!last_use->fence) return SlabRelease(device, slab);
  last_use->fence->event->Then(last_use->value, std::move(static_cast<Held*>(slab->handle)->release));
}

void MemoryInfo(mge_device* device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  const Memory& memory = device->gpu.memory();
  *total_bytes = memory.capacity();
  *free_bytes = memory.capacity() - memory.used();
}

uint64_t RangeGranularity(mge_device*) noexcept { return Memory::kGranularity; }

mge_code RangeReserve(mge_device* device, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    void* address = nullptr;
    if (Result r = device->gpu.Health(); !r.ok()) return Report(error, r);
    if (Result r = device->gpu.memory().Reserve(bytes, &address); !r.ok()) return Report(error, r);
    Fill(out, MakeSlab(MGE_MEMORY_DEVICE, bytes, address, nullptr));
    return MGE_OK;
  });
}

void RangeRelease(mge_device* device, const mge_slab* range) noexcept { device->gpu.memory().Free(range->address); }

mge_code RangeCommit(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, device->gpu.Commit(range->address, offset, bytes)); });
}

void RangeDecommit(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes) noexcept {
  device->gpu.memory().Decommit(range->address, offset, bytes);
}

}  // namespace

const mge_memory_api kMemoryTable = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = Text("growing");
  t.reserve = Text("none");
  t.slab_release_after = SlabReleaseAfter;
  t.range_granularity = RangeGranularity;
  t.range_reserve = RangeReserve;
  t.range_release = RangeRelease;
  t.range_commit = RangeCommit;
  t.range_decommit = RangeDecommit;
});

}  // namespace mge::virtual_gpu
