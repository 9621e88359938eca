// SPDX-License-Identifier: Apache-2.0
// Chains of elementwise float32 nodes, each of which reads the result of the one before it. Computed in one pass. A chain
// can also write results in its middle that nodes outside of it read, and quantize to 8 bits and dequantize.
#pragma once

#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/recipe.h"

namespace mge::gpu {

// The launch of a chain.
class Chain {
 public:
  // Builds the launch of a problem that is such a chain. Fails with the reason if it is not.
  Result Build(const Problem& p, Layout layout, Recipe* recipe);
  // Returns the inputs whose memory the output may use.
  const std::vector<mge_in_place>& in_place() const { return in_place_; }

 private:
  std::vector<mge_in_place> in_place_;
};

// Offers the longest chains of a graph.
void OfferChains(const Pattern& pattern, ClaimList& claims);

}  // namespace mge::gpu
