// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/replacements.h"

namespace mge {

Replacements::Replacements(Graph& graph)
    : graph_(graph), given_out_(graph.value_count(), false), stand_ins_(graph.value_count(), kNone) {
  for (ValueId v : graph.outputs()) given_out_[v] = true;
}

ValueId Replacements::Resolve(ValueId v) const {
  while (v >= 0 && v < static_cast<ValueId>(stand_ins_.size()) && stand_ins_[v] != kNone) v = stand_ins_[v];
  return v;
}

bool Replacements::Bypass(NodeId id, ValueId with) {
  const ValueId out = graph_.node(id).outputs[0];
  if (GivenOut(out)) return false;
  Replace(out, with);
  graph_.RemoveNode(id);
  return true;
}

void Replacements::Update(Node& node) const {
  for (ValueId& v : node.inputs) v = Resolve(v);
  for (ValueId& v : node.captures) v = Resolve(v);
}

void Replacements::Finish() {
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    if (!graph_.node(id).dead) Update(graph_.node(id));
  }
  for (ValueId& v : graph_.outputs()) v = Resolve(v);
}

}  // namespace mge
