// SPDX-License-Identifier: Apache-2.0
// Helpers of the elementwise operators with one input.
#pragma once

#include "core/ops/op_helpers.h"

namespace mge {

// Removes "consumed_inputs", a memory hint of operator sets before 6.
inline absl::Status DropConsumedInputs(Graph&, Node& node) {
  if (node.version < 6) node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

// Sets output 0 to bool with input 0's shape.
inline absl::Status BoolOfFirst(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = DType::kBool;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

}  // namespace mge
