// SPDX-License-Identifier: Apache-2.0
// Operands that are broadcast to an output, brought to the fewest dimensions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::gpu {

// dims[d] and, for operand i, strides[i][d]: 0 where it is repeated. Dimensions of one element are gone, and neighbours
// that every operand walks as one are joined. At least one dimension is left.
struct Broadcast {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;

  // True if every operand is dense (step 1) or one element (step 0).
  bool plain() const { return dims.size() == 1; }
  int64_t step(size_t operand) const { return strides[operand][0]; }
};

Broadcast BroadcastTo(std::span<const int64_t> out, const std::vector<Value>& operands);

// The same for operands with strides of their own.
void Collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides);

}  // namespace mge::gpu
