// SPDX-License-Identifier: Apache-2.0
// Host memory in slabs, and how much of it there is.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

struct MemoryAmount {
  uint64_t free = 0;   // bytes that could be had without swapping
  uint64_t total = 0;  // the machine's, or the limit of our control group if that is less
};

// What the machine and the control groups of this process allow now. [any]
MemoryAmount SystemMemory();

extern const mge_memory_api kMemoryApi;

}  // namespace mge::cpu
