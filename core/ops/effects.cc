// SPDX-License-Identifier: Apache-2.0
#include "core/ops/effects.h"

#include <algorithm>
#include <utility>

namespace mge {

bool HasBody(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(),
                     [](const auto& item) { return std::holds_alternative<GraphPtr>(item.second); });
}

const OpDef& PlainForm(const OpDef& def) {
  MGE_CHECK(def.Is(kAccumulates));
  static const OpDef* const add = FindOp("", "Add");
  return *add;
}

ValueId StateOf(const Graph& graph, ValueId v) {
  while (v != kNone) {
    const Value& value = graph.value(v);
    if (value.role == Role::kState) return v;
    if (value.producer == kNone) return kNone;
    const Node& node = graph.node(value.producer);
    if (!node.def || !IsUpdate(*node.def) || node.inputs.empty()) return kNone;
    v = node.inputs[0];
  }
  return kNone;
}

uint32_t VersionOf(const Graph& graph, ValueId v) {
  uint32_t updates = 0;
  for (; graph.value(v).producer != kNone; v = graph.node(graph.value(v).producer).inputs[0]) ++updates;
  return updates;
}

void MarkStates(Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead) continue;
    const OpDef* def = node.def ? node.def : FindOp(node.domain, node.op);
    if (!def || !IsUpdate(*def) || node.inputs.empty() || node.inputs[0] == kNone) continue;
    Value& target = graph.value(node.inputs[0]);
    if (target.role == Role::kConstant && target.type.dtype != DType::kString) target.role = Role::kState;
  }
}

}  // namespace mge
