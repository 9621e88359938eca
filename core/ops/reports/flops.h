// SPDX-License-Identifier: Apache-2.0
// Computes the work of a node for reports: arithmetic operations and bytes read. flops.cc has a row for each
// operator whose work does not follow from its traits.
//
// A multiplication with an addition counts as two operations, a comparison or an exponential as one. The counts follow
// the operator's definition, even if a kernel needs fewer operations (Winograd, fused constants).
#pragma once

#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace mge {

// A node and the types of its inputs and outputs. The pointer of an absent input or output is null.
struct NodeTypes {
  const Node& node;
  std::span<const TensorType*const> inputs, outputs;
};

// Returns the number of operations of a node: 0 if it only moves data, -1 if a type is not static.
double FlopsOf(const NodeTypes& types);
double FlopsOf(const Graph& graph, const Node& node);

// Returns whether a node computes few operations for each element that it reads, so that computing it again costs less than a
// product or a convolution does: elementwise nodes, those that only move elements, normalizations, softmax and pools.
bool IsCheap(const Node& node);

// Returns the bytes that a node reads from input `i`, or -1 if a type is not static.
double BytesRead(const NodeTypes& types, int i);
// Returns the bytes of a tensor: 0 for strings, -1 if the type is not static.
double BytesOf(const TensorType& type);

// A row of the table. Operators without a row are counted by their traits.
struct OpWork {
  std::string_view op;
  double (*flops)(const NodeTypes& types) = nullptr;  // requires static types; null means 0 operations
  bool reads_part = false;                            // reads at most as many bytes of input 0 as it writes
  bool cheap = false;                                 // few operations for each element that it reads
  std::string_view domain = "";
};
std::span<const OpWork> AllOpWork();

}  // namespace mge
