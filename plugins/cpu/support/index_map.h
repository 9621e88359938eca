// SPDX-License-Identifier: Apache-2.0
// Outputs whose element (i, j, ...) is the input's element (map0[i], map1[j], ...): pads by reflection, nearest resampling.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "support/kernel.h"

namespace mge::cpu {

// The place in the input for a position of the output, one function a logical dimension. Asked for every position when a
// kernel is made, and never before.
struct IndexMap {
  std::vector<std::function<int64_t(int64_t)>> place;

  // For the problem's first node, its input 0 and output 0 both lying plainly or both with channels last.
  KernelPtr MakeKernel(const Problem& p, bool channels_last) const;
};

// Offers a map in the plain layout and, for 3 to 5 dimensions, with channels last (variant 1).
void OfferIndexMap(const Problem& p, Offers& offers, const char* id);

}  // namespace mge::cpu
