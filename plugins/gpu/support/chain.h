// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes of float32 that follow one another, each read by the next alone: computed in one pass.
#pragma once

#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/support/recipe.h"

namespace mge::gpu {

class Chain {
 public:
  // The chain that a problem asks for, as a launch, or why it is none.
  Result Build(const Problem& p, Recipe* recipe);
  // Inputs whose place the output may take.
  const std::vector<mge_in_place>& in_place() const { return in_place_; }

 private:
  std::vector<mge_in_place> in_place_;
};

// Offers the longest chains of a graph.
void OfferChains(const Pattern& pattern, const mge_claim_sink* sink);

}  // namespace mge::gpu
