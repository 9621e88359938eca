// SPDX-License-Identifier: Apache-2.0
// The work of nodes, for reports: arithmetic operations, and bytes read. shared/flops.cc has a row for each operator whose work
// does not follow from its traits.
//
// A multiplication and an addition count as two operations, a comparison or an exponential as one. Counts tell how much a model
// asks for, whatever a kernel does instead (Winograd, a fused constant).
#pragma once

#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace mge {

// A node and the types of its inputs and outputs; nullptr where one is absent.
struct NodeTypes {
  const Node& node;
  std::span<const TensorType* const> inputs, outputs;
};

// Operations of a node; 0 if it only moves data, -1 if a type is not static.
double FlopsOf(const NodeTypes& types);

// Bytes that a node has to read of input `i`, or -1 if a type is not static.
double BytesRead(const NodeTypes& types, int i);
double BytesOf(const TensorType& type);  // 0 for strings

// A row, for operators of the domain "".
struct OpWork {
  std::string_view op;
  double (*flops)(const NodeTypes& types) = nullptr;  // requires static types; nullptr: none
  bool reads_part = false;                            // of input 0 it reads no more than it gives out
};
std::span<const OpWork> AllOpWork();

}  // namespace mge
