// SPDX-License-Identifier: Apache-2.0
// Finds products of one tensor with several constant matrices of equal size, such as queries, keys and values, each with a
// bias or without.
#pragma once

#include <cstdint>
#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/support/product.h"

namespace mge::gpu {

// Products a b[i] + bias[i]. Values are ids in the graph.
struct Siblings {
  struct Product {
    int32_t b = -1, bias = -1, output = -1;  // bias is -1 if there is none
  };
  int32_t a = -1;
  std::vector<Product> products;  // at most kMaxSiblings
  std::vector<int32_t> nodes;     // ascending
};

// Finds node `first`, a product, and the products of the same tensor behind it. Returns false if there is only one.
bool FindSiblings(const Graph& graph, int first, Siblings* found);
// Finds the products if they are the whole problem.
bool FindSiblings(const Problem& p, Siblings* found);
// Returns one of the products of such a problem.
Product ProductOf(const Problem& p, const Siblings::Product& one);

// Offers all products of the graph that have siblings.
void OfferSiblings(const Pattern& pattern, ClaimList& claims);

}  // namespace mge::gpu
