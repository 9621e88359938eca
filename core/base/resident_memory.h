// SPDX-License-Identifier: Apache-2.0
// The memory of this process, as the system counts it.
#pragma once

#include <cstdint>

namespace mge {

// In bytes, from /proc/self/smaps_rollup. All 0 if the system does not tell.
struct ResidentMemory {
  uint64_t total = 0;      // pages in memory
  uint64_t anonymous = 0;  // without a file: weights, arenas, the heap
  uint64_t mapped = 0;     // of files: programs and libraries
};

ResidentMemory ReadResidentMemory();

}  // namespace mge
