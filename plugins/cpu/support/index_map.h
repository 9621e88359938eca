// SPDX-License-Identifier: Apache-2.0
// Operators whose output element (i, j, ...) is the input's element (map0[i], map1[j], ...): pads by reflection, nearest
// resampling.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "support/kernel.h"

namespace mge::cpu {

// Maps an output position to an input position, one function per logical dimension. The functions are called for every
// position when a kernel is created, and not before.
struct IndexMap {
  std::vector<std::function<int64_t(int64_t)>> place;

  // Creates a kernel for the problem's first node, with input 0 and output 0 both plain or both with channels last.
  KernelPtr MakeKernel(const Problem& p, bool channels_last) const;
};

// Offers a map in the plain layout and, for 3 to 5 dimensions, with channels last (variant 1).
void OfferIndexMap(const Problem& p, Offers& offers, const char* id);

}  // namespace mge::cpu
