// SPDX-License-Identifier: Apache-2.0
// Outputs whose element (i, j, ...) is the input's element (map0[i], map1[j], ...): pads by reflection, nearest resampling.
#pragma once

#include <cstdint>
#include <vector>

#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {

// Places in the input for every position of the output, one list a logical dimension.
struct IndexMap {
  std::vector<std::vector<int64_t>> places;

  double serial_us(const Value& y) const;
  // For input number `input` of the problem and output 0, both lying plainly or both with channels last.
  KernelPtr MakeKernel(const Value& x, int input, bool channels_last) const;
};

// Offers a map in the plain layout and, for 3 to 5 dimensions, with channels last (variant 1).
void OfferIndexMap(const Problem& p, Offers& offers, const IndexMap& map, const char* id);

}  // namespace mge::cpu
