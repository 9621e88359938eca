// SPDX-License-Identifier: Apache-2.0
// What a kernel found in the data that it cannot compute with. Read by device compilers too.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// Lies in memory of the device, zeroed by the backend. The first thread that finds something fills it; kernels go on
// without touching memory that is not theirs.
struct Fault {
  enum What : uint32_t { kNone = 0, kIndex = 1, kDivision = 2, kLength = 3 };
  uint32_t what;
  uint32_t reserved;
  int64_t value;  // kIndex: the index; kDivision: the dividend; kLength: the length of a sequence
  int64_t bound;  // kIndex: it must lie in [-bound, bound); kDivision: the divisor; kLength: the steps
};

}  // namespace mge::gpu
