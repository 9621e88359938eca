// SPDX-License-Identifier: Apache-2.0
// Pixels of a channels-last image, weighted and blended for all channels at once.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

inline constexpr int kMostPixels = 4;

struct Pixels {
  int count;                        // at most kMostPixels
  const float* pixel[kMostPixels];  // their channels
  float weight[kMostPixels];
};

struct BlendTable {
  // Adds the weighted pixels to sums[0..channels).
  void (*add)(const Pixels& pixels, int64_t channels, float* sums);
  // Raises largest[0..channels) to the greatest weighted pixel.
  void (*raise)(const Pixels& pixels, int64_t channels, float* largest);
};

MGE_CPU_DISPATCH(BlendTable, Blend)

}  // namespace mge::cpu
