// SPDX-License-Identifier: Apache-2.0
// Functions on nodes that binding, type inference and the interpreter share. Operators do not use them.
#pragma once

#include "core/ops/op.h"

namespace mge {

// Returns the rows of each source file of operators.
std::span<const OpRows* const> OpFiles();

// Checks known element types against the schema, and kinds too if `kinds_known`. node.def must not be null.
absl::Status CheckInputTypes(const Graph& graph, const Node& node, bool kinds_known);

// Returns the node's attribute "seed", or `fallback` if it has none.
uint64_t NodeSeed(const Node& node, uint64_t fallback);

// Evaluates a node on known values. Returns an empty list if that fails or needs more than `max_bytes` bytes.
std::vector<Tensor> EvaluateSmall(const Node& node, std::span<const HostValue> inputs, int64_t max_bytes);

}  // namespace mge
