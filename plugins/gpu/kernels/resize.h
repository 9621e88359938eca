// SPDX-License-Identifier: Apache-2.0
// Arguments of the resampling kernels.
#pragma once

#include <stdint.h>

namespace mge::gpu {

enum ResizeMode : int32_t {
  kNearestFloor,
  kNearestCeil,
  kNearestFloorOrCeil,  // ceil if the scale is below 1
  kNearestPreferFloor,
  kNearestPreferCeil,
  kLinear,
  kCubic
};

enum ResizeCoordinates : int32_t { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric, kHalfPixelSymmetric };

// One dimension. A dimension with `identical` set is copied.
struct ResizeAxis {
  int64_t in, out, stride;  // stride of x
  double scale;
  int32_t identical, reserved;
};

// y = x resampled; dimensions outermost first.
struct ResizeArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t rank, mode;
  int32_t coordinates, exclude_outside;
  float cubic_a;
  int32_t reserved;
  ResizeAxis axis[8];
};

}  // namespace mge::gpu
