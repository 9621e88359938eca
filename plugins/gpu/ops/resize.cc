// SPDX-License-Identifier: Apache-2.0
// Resize: nearest along any dimensions; linear and cubic of floats along at most three dimensions.
#include "mge/plugin/problems/resize.hpp"

#include <algorithm>

#include "plugins/gpu/kernels/resize.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

struct Word {
  std::string_view name;
  int32_t value;
};
constexpr Word kCoordinates[] = {{"half_pixel", kHalfPixel},
                                 {"pytorch_half_pixel", kPytorchHalfPixel},
                                 {"align_corners", kAlignCorners},
                                 {"asymmetric", kAsymmetric},
                                 {"half_pixel_symmetric", kHalfPixelSymmetric}};
constexpr Word kRoundings[] = {{"floor", kNearestFloor},
                               {"ceil", kNearestCeil},
                               {"floor_or_ceil", kNearestFloorOrCeil},
                               {"round_prefer_floor", kNearestPreferFloor},
                               {"round_prefer_ceil", kNearestPreferCeil}};

bool Find(std::span<const Word> words, std::string_view name, int32_t* value) {
  for (const Word& w : words) {
    if (w.name == name) return *value = w.value, true;
  }
  return false;
}

Result Build(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  int rank = x.rank();
  if (n.Int("antialias")) return Refusal("no antialiasing");
  ResizeArgs args = {};
  std::string_view mode = n.Word("mode");
  bool nearest = mode == "nearest";
  if (nearest && !Find(kRoundings, n.Word("nearest_mode"), &args.mode)) return Refusal("unsupported nearest_mode");
  if (!nearest) {
    if (mode != "linear" && mode != "cubic") return Refusal("no mode " + std::string(mode));
    if (!IsFloating(x.dtype())) return Refusal("only floating types");
    args.mode = mode == "linear" ? kLinear : kCubic;
  }
  if (!Find(kCoordinates, n.Word("coordinate_transformation_mode"), &args.coordinates))
    return Refusal("unsupported coordinate_transformation_mode");
  args.cubic_a = n.Float("cubic_coeff_a");
  args.exclude_outside = n.Int("exclude_outside") != 0;
  if (args.exclude_outside && args.mode == kLinear) return Refusal("exclude_outside of mode linear");

  std::vector<ResampledAxis> axes;
  if (Result r = ReadResize(n, &axes); !r.ok()) return Refusal(r.text());
  std::vector<int64_t> strides = StridesIn(layout, x.dims());
  int resampled = 0;
  for (int d = 0; d < rank; ++d) {
    const ResampledAxis& a = axes[static_cast<size_t>(d)];
    args.axis[d] = {a.in, a.out, strides[static_cast<size_t>(d)], a.scale, a.identity(), 0};
    resampled += !a.identity();
  }
  if (!nearest && resampled > 3) return Refusal("more than three dimensions are resampled");
  std::ranges::copy(InOrder<ResizeAxis>(MemoryOrder(layout, static_cast<size_t>(rank)), std::span(args.axis)), args.axis);
  args.n = static_cast<int64_t>(y.elements());
  args.rank = rank;
  if (args.n == 0) return {};
  recipe.Add(nearest ? "resize_nearest_" + std::to_string(ElementBytes(x.dtype())) : KernelFor("resize_smooth", x.dtype()),
             Spread(args.n), args, {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

constexpr KernelRow kRows[] = {Row<MoveRow<Build>>("Resize")};

}  // namespace

MGE_KERNELS(resize) = kRows;

}  // namespace mge::gpu
