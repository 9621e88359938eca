// SPDX-License-Identifier: Apache-2.0
// Runs before constants are folded and patterns replaced, so that both see the nodes of the bodies.
#include "core/base/errors.h"
#include "core/ops/function_body.h"
#include "core/ops/op.h"
#include "core/plan/passes/pass.h"

namespace mge {

absl::StatusOr<int> ExpandFunctions(Graph& graph, const PassContext& context) {
  int changes = 0;
  for (int depth = 0; depth < kMaxBodyDepth; ++depth) {  // a body may contain function operators
    const int before = changes;
    for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
      if (graph.node(id).dead || !graph.node(id).def || !graph.node(id).def->body) continue;
      MGE_RETURN_IF_ERROR(context.CheckStop());
      if (context.keeps_function && context.keeps_function(graph, id)) continue;
      MGE_ASSIGN_OR_RETURN(const bool expanded, ExpandFunction(graph, id));
      if (expanded) ++changes;
    }
    if (changes == before) break;
    MGE_RETURN_IF_ERROR(context.InferTypes(graph));
  }
  return changes;
}

}  // namespace mge
