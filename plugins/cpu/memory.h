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
};

}  // namespace mge::cpu
