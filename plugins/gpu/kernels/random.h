// SPDX-License-Identifier: Apache-2.0
// Arguments of the random kernels. Random numbers are those of Philox 4x32-10 (J. K. Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011): block number c of a key gives four 32-bit numbers. Element i uses number i % 4 of
// block counter + i / 4, so results do not depend on the grid.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// The key and the first block of a run, written by the host before the run.
struct RandomState {
  uint64_t key, counter;
};

// y[i] = a + b * random number of [0, 1), or of the standard normal distribution.
struct RandomArgs {
  const RandomState* state;
  void* y;
  int64_t n;
  double a, b;
};

// y[i] = x[i] / (1 - ratio) and mask[i] = 1 if a random number of [0, 1) is at least `ratio`, else both 0. `mask` may be
// null.
struct DropoutArgs {
  const RandomState* state;
  const void* x;
  void* y;
  uint8_t* mask;
  int64_t n;
  double ratio;
};

}  // namespace mge::gpu
