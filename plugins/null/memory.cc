// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "backend.h"

namespace backend {
namespace {

constexpr uint64_t kAlignment = 64;  // the least that the contract asks for

}  // namespace

// Called rarely: pools keep what they get. The host has charged the device's budget before.
mge::Result Memory::Acquire(Device&, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  if (memory_class != MGE_MEMORY_DEVICE && memory_class != MGE_MEMORY_PINNED) {
    return {MGE_UNIMPLEMENTED, "this backend has no memory of that class"};
  }
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* address = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  // RESOURCE_EXHAUSTED makes a pool give back what it keeps, and try again.
  if (!address) return {MGE_RESOURCE_EXHAUSTED, "the system gives no more memory"};
  // The second address is the host's; nullptr where the host cannot reach the memory.
  *out = mge::MakeSlab(memory_class, bytes, address, address);
  return {};
}

void Memory::Release(Device&, const mge_slab& slab) { std::free(slab.address); }

// Free and total bytes; 0 of 0 says: not known.
mge::MemoryAmount Memory::Info(Device&) { return {}; }

}  // namespace backend
