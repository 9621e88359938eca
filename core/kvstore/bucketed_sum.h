// SPDX-License-Identifier: Apache-2.0
// The nodes with which a replica sums values over all replicas, and gathers parts of arrays.
//
// Sums in buckets go on while the backward pass computes the next values. Algorithm: sorts the values by the time at which they
// are computed, and cuts the list into buckets. Each bucket has a node that begins its sum (mge.StartSum) and one that waits for it (mge.EndSum). Tokens chain the first nodes, so that all replicas
// begin the sums in one order; the last token leads to all that wait, so that no replica waits before it has begun all sums.
#pragma once

#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace mge {

// Values of which a replica needs only its part of the sum (PartOfElements()).
struct SumParts {
  std::vector<bool> of = {};  // by value; empty: none
  uint32_t replica = 0, replicas = 1;
};

// Adds the nodes, and returns the sums in the order of `values`, whose types must be known; parts are vectors. A bucket is closed
// when it has `min_elements`. The element bits of a sum do not depend on its bucket.
absl::StatusOr<std::vector<ValueId>> AddBucketedSum(Graph& graph, std::span<const ValueId> values, int64_t min_elements,
                                                    const SumParts& parts = {});

// Adds one node that sums all values.
std::vector<ValueId> AddSum(Graph& graph, std::span<const ValueId> values);

// Adds a node that joins the parts of arrays: see GatherFromReplicas in core/train/training.h.
std::vector<ValueId> AddGather(Graph& graph, ValueId token, std::span<const ValueId> parts,
                               std::span<const int64_t> elements);

}  // namespace mge
