// SPDX-License-Identifier: Apache-2.0
// Reads the sizes and scales of Resize.
#pragma once

#include <vector>

#include "mge/plugin/problems/operands.hpp"

namespace mge MGE_HIDDEN {

// One dimension of a Resize.
struct ResampledAxis {
  int64_t in = 1, out = 1;
  double scale = 1;  // as given, or out / in
  bool identity() const { return in == out && scale == 1.0; }
};

// Reads all dimensions. Fails if the scales are not constant, or nothing can be resampled.
inline Result ReadResize(const Node& node, std::vector<ResampledAxis>* out) {
  const Value x = node.input(0), y = node.output(0);
  const std::span<const int64_t> given = node.Ints("axes");
  std::vector<int64_t> axes(given.begin(), given.end());
  for (int d = 0; d < x.rank() && given.empty(); ++d) axes.push_back(d);
  const bool by_scales = node.has_input(2) && node.input(2).elements() > 0;
  if (by_scales && !node.input(2).is_constant()) return {MGE_UNIMPLEMENTED, "the scales are not constant"};
  if (by_scales && (node.input(2).dtype() != MGE_DTYPE_F32 || node.input(2).elements() != axes.size())) {
    return {MGE_UNIMPLEMENTED, "scales that do not fit"};
  }
  if (!by_scales && node.Word("keep_aspect_ratio_policy") != "stretch")
    return {MGE_UNIMPLEMENTED, "only the policy stretch"};
  out->clear();
  for (int d = 0; d < x.rank(); ++d) {
    if (x.dim(d) == 0) return {MGE_UNIMPLEMENTED, "nothing to resample"};
    out->push_back({x.dim(d), y.dim(d), 1});
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ResampledAxis& a = (*out)[static_cast<size_t>(axes[i])];
    a.scale = by_scales ? static_cast<double>(node.input(2).data<float>()[i])
                        : static_cast<double>(a.out) / static_cast<double>(a.in);
  }
  return {};
}

}  // namespace MGE_HIDDEN
