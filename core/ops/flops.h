// SPDX-License-Identifier: Apache-2.0
// The work of nodes, for reports: arithmetic operations and bytes read. shared/flops.cc has a row for each operator whose work
// does not follow from its traits.
//
// A multiplication and an addition count as two operations, a comparison or an exponential as one. The counts are those of the
// operator's definition, even if a kernel does less (Winograd, a fused constant).
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

// Returns the operations of a node: 0 if it only moves data, -1 if a type is not static.
double FlopsOf(const NodeTypes& types);

// Returns the bytes that a node reads of input `i`, or -1 if a type is not static.
double BytesRead(const NodeTypes& types, int i);
// Returns the bytes of a tensor: 0 for strings, -1 if the type is not static.
double BytesOf(const TensorType& type);

// A row of the table.
struct OpWork {
  std::string_view op;
  double (*flops)(const NodeTypes& types) = nullptr;  // requires static types; nullptr: none
  bool reads_part = false;                            // it reads at most as many bytes of input 0 as it writes
  std::string_view domain = "";
};
std::span<const OpWork> AllOpWork();

}  // namespace mge
