// SPDX-License-Identifier: Apache-2.0
// Reads ReduceSum, ReduceMean and their kin.
#pragma once

#include <vector>

#include "mge/plugin/problems/operands.hpp"

namespace mge MGE_HIDDEN {

// The dimensions that a reduction joins.
struct Reduction {
  std::vector<bool> reduced;  // per dimension of the input
  bool keeps_axes = true;     // reduced dimensions stay with size 1
  // No dimension is reduced, because the node has no axes and says that this reduces nothing.
  bool nothing = false;
};

// Fails if the axes are not constant.
inline Result ReadReduction(const Node& node, Reduction* out) {
  const int rank = node.input(0).rank();
  std::vector<int64_t> axes;
  if (node.has_input(1)) {
    if (Result r = ReadAxes(node, 1, rank, &axes); !r.ok()) return r;
  }
  out->keeps_axes = node.Int("keepdims") != 0;
  out->nothing = axes.empty() && node.Int("noop_with_empty_axes") != 0;
  out->reduced.assign(static_cast<size_t>(rank), axes.empty() && !out->nothing);
  for (const int64_t axis : axes) out->reduced[static_cast<size_t>(axis)] = true;
  return {};
}

}  // namespace MGE_HIDDEN
