// SPDX-License-Identifier: Apache-2.0
// A fault: an input value that a kernel cannot compute with, such as an index out of range. Also compiled for devices.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// A fault word: device memory, zeroed when its queue is created. The first thread that finds a fault fills it. Kernels
// continue without accessing invalid memory.
struct Fault {
  enum What : uint32_t { kNone = 0, kIndex = 1, kDivision = 2, kLength = 3 };
  uint32_t what;
  uint32_t reserved;
  int64_t value;  // kIndex: the index; kLength: the length of a sequence
  int64_t bound;  // kIndex: must be in [-bound, bound); kLength: the number of steps
};

}  // namespace mge::gpu
