// SPDX-License-Identifier: Apache-2.0
// Spanning trees that share the links of a group of devices: together, they sum arrays at nearly the highest rate that the links
// allow.
//
// Each tree sums its share of the elements: up to its root along its links, and down again. A link carries both directions at
// the same time, so that only the set of a tree's links matters, not its root. The highest rate is the largest fractional
// packing of spanning trees: over all divisions of the devices into groups, the smallest
//   capacity of the links between groups / (groups - 1)
// Algorithm: replaces each link by parallel ones of capacity 1, and finds the largest number of spanning trees without a common
// link (a union of matroids, by shortest augmenting paths). Multiples of all capacities give packings with fractions.
// Sources: Nash-Williams, "Edge-disjoint spanning trees of finite graphs" (1961); Roskind and Tarjan, "A note on finding
// minimum-cost edge-disjoint spanning trees" (1985).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/kvstore/trees.h"

namespace mge {

// Returns the capacities of the links, for a matrix of link classes: a direct link of class c has c - 1 times that of class 2.
// If direct links connect all devices, there are no others. Otherwise the direct ones count `devices` times as much, and a link
// through the host has capacity 1.
LinkMatrix LinkCapacities(const LinkMatrix& classes);

struct PackedTree {
  std::vector<TreeEdge> edges;  // from the root, which is at the centre, to the leaves
  int64_t share = 1;            // of the elements: `share` / the sum of all shares

  int depth() const { return edges.empty() ? 0 : edges.back().level; }
};

struct TreePacking {
  std::vector<PackedTree> trees;  // the first one has the fewest levels
  double rate = 0;                // at which the trees sum, if a link of capacity 1 has rate 1

  int64_t shares() const;
};

// Returns trees of at least one device. Requires: links of a capacity above 0 connect all devices; the capacities are integers.
TreePacking PackTrees(const LinkMatrix& capacities);

// Returns the share of the elements that passes over each link, multiplied by TreePacking::shares().
LinkMatrix LinkLoads(const TreePacking& packing, size_t devices);

// Returns a text for the log: the links of each level.
std::string TreeText(const PackedTree& tree);

}  // namespace mge
