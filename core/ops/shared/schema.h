// SPDX-License-Identifier: Apache-2.0
// What binding, type inference and interpretation share about nodes. Not for operators.
#pragma once

#include "core/ops/op.h"

namespace mge {

// Element types (where known) against the schema; kinds too if they are final. node.def must be bound.
absl::Status CheckInputTypes(const Graph& graph, const Node& node, bool kinds_known);

// The seed of a random node: its own attribute, else `fallback`.
uint64_t NodeSeed(const Node& node, uint64_t fallback);

// Runs an evaluator on known values to learn a small result; empty if it fails or needs more than `max_bytes`.
std::vector<Tensor> EvaluateSmall(const Node& node, std::span<const HostValue> inputs, int64_t max_bytes);

}  // namespace mge
