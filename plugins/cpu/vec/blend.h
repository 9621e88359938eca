// SPDX-License-Identifier: Apache-2.0
// Weighted sums and maxima of pixels of a channels-last image, for all channels at once.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

inline constexpr int kMaxPixels = 4;

// Pixels and their weights.
struct Pixels {
  int count;                       // at most kMaxPixels
  const float* pixel[kMaxPixels];  // each points to a pixel's channels
  float weight[kMaxPixels];
};

struct BlendTable {
  // Adds the weighted pixels to sums[0..channels).
  void (*add)(const Pixels& pixels, int64_t channels, float* sums);
  // Raises largest[0..channels) to the maximum with each weighted pixel.
  void (*raise)(const Pixels& pixels, int64_t channels, float* largest);
};

MGE_CPU_DISPATCH(BlendTable, Blend)

}  // namespace mge::cpu
