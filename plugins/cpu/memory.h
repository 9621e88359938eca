// SPDX-License-Identifier: Apache-2.0
// Host memory in slabs.
#pragma once

#include "device.h"
#include "mge/plugin.hpp"

namespace mge::cpu {

struct Memory {
  // Allocates a slab. Slabs of at least one huge page are mapped and aligned to it; smaller ones come from the heap.
  static Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out);
  static void Release(Device& device, const mge_slab& slab);
  static MemoryAmount Info(Device& device);

  // Ranges of addresses. The granularity is 0 (none are offered) unless the host's setting memory.static_policy is dynamic
  // or both. Otherwise slabs are as good, because the system maps pages at first use.
  static uint64_t RangeGranularity(Device& device);
  static Result RangeReserve(Device& device, uint64_t bytes, mge_slab* out);
  static void RangeRelease(Device& device, const mge_slab& range);
  static Result RangeCommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
  static void RangeDecommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
};

}  // namespace mge::cpu
