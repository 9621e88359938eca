// SPDX-License-Identifier: Apache-2.0
// Broadcasting, reduced to as few dimensions as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/support/layout.h"

namespace mge::gpu {

// dims[d] and, for operand i, strides[i][d]: 0 if the operand is repeated. Dimensions of one element are removed, and
// neighbouring dimensions are merged if every operand allows it. At least one dimension remains.
struct Broadcast {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;

  // Returns whether every operand is dense (step 1) or one element (step 0).
  bool plain() const { return dims.size() == 1; }
  int64_t step(size_t operand) const { return strides[operand][0]; }
};

// Dimensions are in the order of the output's memory. `operands` have the layouts that SetLayout() gives to all.
Broadcast BroadcastTo(std::span<const int64_t> out, const std::vector<Value>& operands, Layout layout = Layout::kPlain);

// Removes and merges dimensions of operands with given strides.
void Collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides);

}  // namespace mge::gpu
