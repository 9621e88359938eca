// SPDX-License-Identifier: Apache-2.0
// Reads Slice.
#pragma once

#include <algorithm>
#include <vector>

#include "mge/plugin/problems/operands.hpp"

namespace mge MGE_HIDDEN {

// The part of one dimension that a Slice takes: output o is input start + o * step. All of them are inside of the input.
struct SliceAxis {
  int64_t start = 0, step = 1;
};

// Reads the bounds of all dimensions. Fails if they are not constant.
inline Result ReadSlice(const Node& node, std::vector<SliceAxis>* out) {
  const Value x = node.input(0), y = node.output(0);
  std::vector<int64_t> starts, axes, steps;
  if (!ConstantInts(node, 1, starts)) return {MGE_UNIMPLEMENTED, "starts are not constant"};
  if (Result r = ReadAxes(node, 3, x.rank(), &axes); !r.ok()) return r;
  if (!node.has_input(3)) axes.resize(std::min(axes.size(), starts.size()));
  steps.assign(starts.size(), 1);
  if (node.has_input(4) && !ConstantInts(node, 4, steps)) return {MGE_UNIMPLEMENTED, "steps are not constant"};
  if (axes.size() != starts.size() || steps.size() != starts.size()) {
    return {MGE_UNIMPLEMENTED, "bounds of different lengths"};
  }
  out->assign(x.dims().size(), {});
  for (size_t i = 0; i < starts.size(); ++i) {
    const int d = static_cast<int>(axes[i]);
    const int64_t size = x.dim(d), count = y.dim(d), step = steps[i];
    if (step == 0) return {MGE_UNIMPLEMENTED, "an axis or step is not valid"};
    if (count == 0) continue;
    const int64_t start = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + size : starts[i], 0, step > 0 ? size : size - 1);
    const int64_t last = start + (count - 1) * step;
    if (last < 0 || last >= size) return {MGE_UNIMPLEMENTED, "the output's shape does not follow from the bounds"};
    (*out)[static_cast<size_t>(d)] = {start, step};
  }
  return {};
}

}  // namespace MGE_HIDDEN
