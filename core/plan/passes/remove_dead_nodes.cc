// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/effects.h"
#include "core/plan/passes/pass.h"

namespace mge {

absl::StatusOr<int> RemoveDeadNodes(Graph& graph, const PassContext&) {
  int changes = 0;
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  std::vector<int32_t> uses(graph.value_count(), 0);
  for (NodeId id : order) {
    for (ValueId v : graph.node(id).inputs) uses[v == kNone ? 0 : v] += v != kNone;
    for (ValueId v : graph.node(id).captures) ++uses[v];
  }
  for (ValueId v : graph.outputs()) ++uses[v];
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    bool used = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNone && uses[v] > 0; });
    // The update of a state has an effect beside its output, and other ranks wait for what an exchange sends.
    used |= node.def && IsUpdate(*node.def) && StateOf(graph, node.inputs[0]) != kNone;
    used |= node.def && node.def->Is(kExchange);
    if (used) continue;
    for (ValueId v : node.inputs) uses[v == kNone ? 0 : v] -= v != kNone;
    for (ValueId v : node.captures) --uses[v];
    graph.RemoveNode(*it);
    ++changes;
  }
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    Value& value = graph.value(v);
    if (value.role != Role::kConstant || uses[v] > 0) continue;
    value.constant = Tensor();  // releases the memory before Compact() removes the value
    value.dead = true;
  }
  return changes;
}

}  // namespace mge
