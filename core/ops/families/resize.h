// SPDX-License-Identifier: Apache-2.0
// Resampling along axes, for Resize and Upsample: the input positions and weights of each output.
#pragma once

#include <string_view>
#include <vector>

#include "core/ops/function_body.h"
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
  enum class Nearest { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil, kFloorOrCeil /* ceil if the scale is below 1 */ };

  Mode mode = Mode::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Nearest nearest = Nearest::kRoundPreferFloor;
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_a = -0.75;
  double extrapolation = 0;
};

// One axis: its sizes, its scale (output / input, given or computed), and the region for tf_crop_and_resize.
struct ResizeAxis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

// The nearest_mode of operator set 10, which no model can name.
inline constexpr std::string_view kFloorOrCeil = "floor_or_ceil";

// Reads and checks the attributes mode, coordinate_transformation_mode, nearest_mode, antialias and others.
absl::StatusOr<ResizeOptions> ReadResizeOptions(const Attributes& attrs);

// Returns floor(size * scale), computed in float32 as exporters do. Fails with kInvalidNode if the scale is not
// positive and finite, or if the result is too large.
absl::StatusOr<int64_t> ScaledSize(int64_t size, float scale);

// Fails with kInvalidNode if an axis of size 0 must grow.
absl::Status CheckResizeAxes(std::span<const ResizeAxis> axes);

// Resamples input 0 (axes.size() dimensions) into output 0. Mode nearest supports every element type.
absl::Status EvalResize(EvalContext& ctx, const ResizeOptions& options, std::span<const ResizeAxis> axes);

// Adds nodes that compute output 0 from input 0 and have gradients: products with matrices of weights, or selections.
absl::Status AddResize(FunctionBody& f, const ResizeOptions& options, std::span<const ResizeAxis> axes);

}  // namespace mge
