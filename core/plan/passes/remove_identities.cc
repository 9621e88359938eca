// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"

namespace mge {
namespace {

bool OnlyFirstOutputUsed(const Node& node, const Replacements& replacements,
                         const std::vector<std::vector<NodeId>>& consumers) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    ValueId v = node.outputs[i];
    if (v != kNone && (!consumers[v].empty() || replacements.GivenOut(v))) return false;
  }
  return true;
}

bool SameStaticType(const Value& a, const Value& b) {
  return a.type.IsStatic() && b.type.IsStatic() && a.type.dtype == b.type.dtype && a.type.dims == b.type.dims;
}

constexpr int kMaxViews = 16;  // views of a chain that one view looks through

// Returns the value with the bytes and shape of the view's output, found through chains of views. Returns kNone if there is
// none.
ValueId SameBytes(const Graph& graph, const Node& view) {
  const Value& out = graph.value(view.outputs[0]);
  const Node* node = &view;
  for (int i = 0; i < kMaxViews; ++i) {
    ValueId source = node->inputs[0];
    if (source == kNone) return kNone;
    if (SameStaticType(graph.value(source), out)) return source;
    if (graph.value(source).producer == kNone) return kNone;
    node = &graph.node(graph.value(source).producer);
    if (!node->def || !node->def->Is(kView) || node->outputs[0] != source) return kNone;
  }
  return kNone;
}

}  // namespace

absl::StatusOr<int> RemoveIdentities(Graph& graph, const PassContext&) {
  int changes = 0;
  auto consumers = graph.Consumers();
  Replacements replacements(graph);
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    Node& node = graph.node(id);
    replacements.Update(node);
    if (!node.def || node.inputs.empty() || node.inputs[0] == kNone) continue;
    if (!OnlyFirstOutputUsed(node, replacements, consumers)) continue;
    ValueId same = node.def->Is(kIdentity) ? node.inputs[0] : node.def->Is(kView) ? SameBytes(graph, node) : kNone;
    if (same != kNone) changes += replacements.Bypass(id, same);
  }
  replacements.Finish();
  return changes;
}

}  // namespace mge
