// SPDX-License-Identifier: Apache-2.0
// Resize: nearest along any dimensions; linear and cubic of floats along at most three dimensions.
#include "plugins/gpu/kernels/resize.h"

#include <algorithm>

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
  if (n.Int("antialias", 0)) return Refusal("no antialiasing");
  ResizeArgs args = {};
  std::string_view mode = n.Word("mode", "nearest");
  bool nearest = mode == "nearest";
  if (nearest && !Find(kRoundings, n.Word("nearest_mode", "round_prefer_floor"), &args.mode))
    return Refusal("unsupported nearest_mode");
  if (!nearest) {
    if (mode != "linear" && mode != "cubic") return Refusal("no mode " + std::string(mode));
    if (!IsFloating(x.dtype())) return Refusal("only floating types");
    args.mode = mode == "linear" ? kLinear : kCubic;
  }
  if (!Find(kCoordinates, n.Word("coordinate_transformation_mode", "half_pixel"), &args.coordinates))
    return Refusal("unsupported coordinate_transformation_mode");
  args.cubic_a = n.Float("cubic_coeff_a", -0.75f);
  args.exclude_outside = n.Int("exclude_outside", 0) != 0;
  if (args.exclude_outside && args.mode == kLinear) return Refusal("exclude_outside of mode linear");

  std::vector<int64_t> axes;
  for (int64_t a : n.Ints("axes")) axes.push_back(AxisOf(a, rank));
  if (axes.empty()) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  bool by_scales = n.has_input(2) && n.input(2).elements() > 0;
  if (by_scales && !n.input(2).is_constant()) return Refusal("the scales are not constant");
  if (by_scales && (n.input(2).dtype() != MGE_DTYPE_F32 || n.input(2).elements() != axes.size()))
    return Refusal("scales that do not fit");
  if (!by_scales && n.Word("keep_aspect_ratio_policy", "stretch") != "stretch") return Refusal("only the policy stretch");
  std::vector<int64_t> strides = StridesIn(layout, x.dims());
  for (int d = 0; d < rank; ++d) {
    if (x.dim(d) == 0) return Refusal("nothing to resample");
    args.axis[d] = {x.dim(d), y.dim(d), strides[static_cast<size_t>(d)], 1, 0, 0};
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0) return Refusal("an axis is outside of the rank");
    ResizeAxis& a = args.axis[axes[i]];
    a.scale = by_scales ? static_cast<double>(n.input(2).data<float>()[i])
                        : static_cast<double>(a.out) / static_cast<double>(a.in);
  }
  int resampled = 0;
  for (int d = 0; d < rank; ++d) {
    ResizeAxis& a = args.axis[d];
    a.identical = a.in == a.out && a.scale == 1.0;
    resampled += !a.identical;
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
