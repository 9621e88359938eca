// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "tables.h"

namespace mge::null {
namespace {

constexpr uint64_t kAlignment = 64;  // the least that the contract asks for

// Called rarely: pools keep what they get. The host has charged the device's budget before.
mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out,
                     mge_error* error) noexcept {
  if (memory_class != MGE_MEMORY_DEVICE && memory_class != MGE_MEMORY_PINNED) {
    return Report(error, MGE_UNIMPLEMENTED, "this backend has no memory of that class");
  }
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* address = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  // RESOURCE_EXHAUSTED makes a pool give back what it caches and try again.
  if (!address) return Report(error, MGE_RESOURCE_EXHAUSTED, "the system gives no more memory");
  // Where the host cannot read device memory, host_address stays NULL and HOST_ACCESSIBLE is not
  // among the device's flags.
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}

void SlabRelease(mge_device*, const mge_slab* slab) noexcept { std::free(slab->address); }

// 0 of 0 says: not known.
void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  *free_bytes = 0;
  *total_bytes = 0;
}

}  // namespace

const mge_memory_api kMemoryTable = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = Text("naive");  // one of the host's; or a mge_pool_api of your own in own_pool
  t.own_pool = nullptr;
  t.reserve = Text("none");  // likewise: "percent:5" leaves a twentieth of the card to others
  t.own_reserve = nullptr;
});

}  // namespace mge::null
