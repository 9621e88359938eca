// SPDX-License-Identifier: Apache-2.0
// Resampling along axes, for Resize and Upsample: where an output looks in the input, and with
// which weights.
#pragma once

#include <vector>

#include "core/ops/infer_checks.h"

namespace mge {

struct ResizeOptions {
  enum class Mode { kNearest, kLinear, kCubic };
  enum class Coordinates {
    kHalfPixel,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kTfCropAndResize,
    kHalfPixelSymmetric,
    kTfHalfPixelForNearest  // operator sets 11 and 12 only
  };
  enum class Nearest { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

  Mode mode = Mode::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Nearest nearest = Nearest::kRoundPreferFloor;
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_a = -0.75;
  double extrapolation = 0;
};

// One axis: sizes, scale (output / input, as given or computed), and the region that
// crop_and_resize reads.
struct ResizeAxis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

// Attributes mode, coordinate_transformation_mode, nearest_mode, antialias, ... checked.
absl::StatusOr<ResizeOptions> ReadResizeOptions(const Attributes& attrs);

// floor(size * scale), the way exporters compute it (in float32). kInvalidNode for scales that are
// not positive and finite, and for results that do not fit.
absl::StatusOr<int64_t> ScaledSize(int64_t size, float scale);

// Nothing can be sampled from an empty axis.
absl::Status CheckResizeAxes(std::span<const ResizeAxis> axes);

// Resamples x (axes.size() dimensions) into output 0. Any element type for mode nearest.
absl::Status EvalResize(EvalContext& ctx, const ResizeOptions& options,
                        std::span<const ResizeAxis> axes);

}  // namespace mge
