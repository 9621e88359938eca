// SPDX-License-Identifier: Apache-2.0
// Reads Pad.
#pragma once

#include <vector>

#include "mge/plugin/problems/operands.hpp"

namespace mge MGE_HIDDEN {

// The elements that a Pad adds around each dimension. Negative numbers crop.
struct Pads {
  std::vector<int64_t> before, after;
};

// Reads the pads of all dimensions. Fails if they are not constant.
inline Result ReadPads(const Node& node, Pads* out) {
  const int rank = node.input(0).rank();
  std::vector<int64_t> pads, axes;
  if (!ConstantInts(node, 1, pads)) return {MGE_UNIMPLEMENTED, "the pads are not constant"};
  if (Result r = ReadAxes(node, 3, rank, &axes); !r.ok()) return r;
  if (pads.size() != 2 * axes.size()) return {MGE_UNIMPLEMENTED, "the number of pads does not match the rank"};
  out->before.assign(static_cast<size_t>(rank), 0);
  out->after.assign(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    out->before[static_cast<size_t>(axes[i])] = pads[i];
    out->after[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  return {};
}

}  // namespace MGE_HIDDEN
