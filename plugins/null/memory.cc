// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "backend.h"

namespace backend {
namespace {

constexpr uint64_t kAlignment = 64;  // the minimum that plugin.h requires

}  // namespace

// Allocates a slab. Called rarely, because pools keep memory. The host has already charged the device's budget.
mge::Result Memory::Acquire(Device&, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  if (memory_class != MGE_MEMORY_DEVICE && memory_class != MGE_MEMORY_PINNED) {
    return {MGE_UNIMPLEMENTED, "this backend has no memory of that class"};
  }
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* address = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  // RESOURCE_EXHAUSTED makes a pool release its idle memory and try again.
  if (!address) return {MGE_RESOURCE_EXHAUSTED, "the system gives no more memory"};
  // The second address is for the host; nullptr if the host cannot access the memory.
  *out = mge::MakeSlab(memory_class, bytes, address, address);
  return {};
}

void Memory::Release(Device&, const mge_slab& slab) { std::free(slab.address); }

// Returns free and total bytes; 0 if unknown.
mge::MemoryAmount Memory::Info(Device&) { return {}; }

}  // namespace backend
