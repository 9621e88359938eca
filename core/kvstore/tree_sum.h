// SPDX-License-Identifier: Apache-2.0
// Sums over replicas along reduction trees, as nodes of each replica's graph: mge.Exchange copies between the devices, and Add
// sums on the device that receives. Small arrays use the tree of replica 0. A big array is cut into one slice per replica, and
// slice i uses the tree of replica i, so that all links are busy. Source: MXNet's CommDeviceTree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/kvstore/trees.h"

namespace mge {

struct TreeSum {
  std::vector<std::vector<TreeEdge>> trees;  // by root
  int depth = 0;
  // An array with more elements is cut along its first dimension, if that is at least twice the number of replicas.
  int64_t slice_above = 10'000'000;

  size_t replicas() const { return trees.size(); }
  bool Cuts(const TensorType& type) const;
  // Adds the nodes of a replica, and returns the sums in the order of `values`, whose types must be known. All replicas must
  // call it for values of the same types.
  absl::StatusOr<std::vector<ValueId>> Add(Graph& graph, std::span<const ValueId> values, int replica) const;
};

}  // namespace mge
