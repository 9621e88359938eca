// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/op.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"

namespace mge {
namespace {

// Returns the permutation of a transpose, or an empty list if its rank is unknown.
Ints PermOf(const Graph& graph, const Node& node) {
  const TensorType& type = graph.value(node.inputs[0]).type;
  if (!type.has_rank) return {};
  Ints perm = node.attrs.IntList("perm");
  if (perm.empty()) {
    for (int64_t i = static_cast<int64_t>(type.dims.size()); i-- > 0;) perm.push_back(i);
  }
  return perm;
}

}  // namespace

absl::StatusOr<int> MergeTransposes(Graph& graph, const PassContext&) {
  int changes = 0;
  Replacements replacements(graph);
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    Node& node = graph.node(id);
    replacements.Update(node);
    if (!node.def || !node.def->Is(kTranspose)) continue;
    Ints perm = PermOf(graph, node);
    if (perm.empty()) continue;
    if (std::is_sorted(perm.begin(), perm.end())) {
      changes += replacements.Bypass(id, node.inputs[0]);
      continue;
    }
    NodeId before = graph.value(node.inputs[0]).producer;
    if (before == kNone || !graph.node(before).def || !graph.node(before).def->Is(kTranspose)) continue;
    Ints first = PermOf(graph, graph.node(before));
    if (first.size() != perm.size()) continue;
    Ints both(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) both[i] = first[perm[i]];
    node.inputs[0] = graph.node(before).inputs[0];
    node.attrs.Set("perm", both);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

}  // namespace mge
