// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op.h"
#include "core/plan/passes/pass.h"

namespace mge {

absl::StatusOr<int> RunInferTypes(Graph& graph, const PassContext& context) {
  MGE_RETURN_IF_ERROR(context.InferTypes(graph));
  return 0;
}

}  // namespace mge
