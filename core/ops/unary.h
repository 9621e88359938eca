// SPDX-License-Identifier: Apache-2.0
// What operators of one elementwise input share.
#pragma once

#include "core/ops/op_helpers.h"

namespace mge {

// Removes "consumed_inputs", a hint about memory that operator sets before 6 had.
inline absl::Status DropConsumedInputs(Graph&, Node& node) {
  if (node.version < 6) node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

// Output 0 is bool and has input 0's shape.
inline absl::Status BoolOfFirst(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = DType::kBool;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

}  // namespace mge
