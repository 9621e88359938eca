// SPDX-License-Identifier: Apache-2.0
#include "support/resize_places.h"

#include <algorithm>

namespace mge::cpu {
namespace {

using Axis = ResampledAxis;

// Computes in F: the nearest element depends on the last bit, and is that of float32.
template <typename F>
SourceFn FindSource(std::string_view mode) {
  if (mode == "half_pixel") {
    return [](const Axis& a, double at) -> double { return (F(at) + F(0.5)) / F(a.scale) - F(0.5); };
  }
  if (mode == "pytorch_half_pixel") {
    return [](const Axis& a, double at) -> double { return a.out > 1 ? (F(at) + F(0.5)) / F(a.scale) - F(0.5) : F(0); };
  }
  if (mode == "align_corners") {
    return [](const Axis& a, double at) -> double { return a.out <= 1 ? F(0) : F(at) * F(a.in - 1) / F(a.out - 1); };
  }
  if (mode == "asymmetric") return [](const Axis& a, double at) -> double { return F(at) / F(a.scale); };
  if (mode == "half_pixel_symmetric") {
    return [](const Axis& a, double at) -> double {
      const F in = F(a.in), scale = F(a.scale);
      return in / 2 * (1 - F(a.out) / (scale * in)) + (F(at) + F(0.5)) / scale - F(0.5);
    };
  }
  return nullptr;
}

}  // namespace

Result ReadResizeAxes(const Node& n, std::vector<Axis>* out) {
  if (n.input(0).rank() > 8) return {MGE_UNIMPLEMENTED, "too many dimensions"};
  return ReadResize(n, out);
}

SourceFn FindSource(const Node& n) {
  const std::string_view mode = n.Word("coordinate_transformation_mode");
  return n.Word("mode") == "nearest" ? FindSource<float>(mode) : FindSource<double>(mode);
}

double PlaceOf(SourceFn source, const Axis& a, int64_t i) {
  double in = static_cast<double>(a.in);
  return a.identity() ? static_cast<double>(i) : std::clamp(source(a, static_cast<double>(i)), -(in + 1), 2 * (in + 1));
}

}  // namespace mge::cpu
