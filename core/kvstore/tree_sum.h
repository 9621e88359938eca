// SPDX-License-Identifier: Apache-2.0
// Sums over replicas along reduction trees, as nodes of each replica's graph: mge.Exchange copies between the devices, and Add
// sums on the device that receives. A big array is cut into one slice per tree, so that all links are busy. Each other
// array uses a single tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/kvstore/tree_packing.h"

namespace mge {

struct TreeSum {
  TreeSum(TreePacking packing, bool spreads, int64_t slice_above);

  // Returns whether an array is cut: there are several trees, it has more than `slice_above` elements, and two rows per share.
  bool Cuts(const TensorType& type) const;
  // Adds the nodes of a replica, and returns the sums in the order of `values`, whose types must be known. All replicas must
  // call it for values of the same types.
  absl::StatusOr<std::vector<ValueId>> Add(Graph& graph, std::span<const ValueId> values, int replica) const;

  TreePacking packing;
  int depth = 0;  // of the deepest tree
  // Arrays that are not cut use the tree with the lowest load for its share. false: the first tree, as in MXNet.
  bool spreads = true;
  int64_t slice_above = 10'000'000;
};

}  // namespace mge
