// SPDX-License-Identifier: Apache-2.0
// Passes that remove nodes: identities, transposes, equal and dead nodes.
#include <algorithm>
#include <map>
#include <string>

#include "core/ops/op.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Removes a node and replaces its output 0 by `with`. Returns false if that output is an output of the graph.
bool Bypass(Graph& graph, Replacements& replacements, NodeId id, ValueId with) {
  ValueId out = graph.node(id).outputs[0];
  if (replacements.GivenOut(out)) return false;
  replacements.Replace(out, with);
  graph.RemoveNode(id);
  return true;
}

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

// Returns the value with the bytes and shape of the view's output, found through chains of views. Returns kNone if there is
// none.
ValueId SameBytes(const Graph& graph, const Node& view) {
  const Value& out = graph.value(view.outputs[0]);
  for (const Node* node = &view;;) {
    ValueId source = node->inputs[0];
    if (source == kNone) return kNone;
    if (SameStaticType(graph.value(source), out)) return source;
    if (graph.value(source).producer == kNone) return kNone;
    node = &graph.node(graph.value(source).producer);
    if (!node->def || !node->def->Is(kView) || node->outputs[0] != source) return kNone;
  }
}

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

// Returns a text that is equal for equal nodes, or "" if the node must not be merged.
std::string NodeKey(const Node& node) {
  std::string key = fmt::format("{}|{}|{}|", node.domain, node.op, node.version);
  for (ValueId v : node.inputs) key += fmt::format("{},", v);
  key += fmt::format("|{}|", node.outputs.size());
  std::vector<std::string> attrs;
  for (const auto& [name, value] : node.attrs) {
    std::string text = name + "=";
    if (const auto* i = std::get_if<int64_t>(&value)) {
      text += fmt::format("i{}", *i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      text += fmt::format("f{:a}", *f);
    } else if (const auto* t = std::get_if<std::string>(&value)) {
      text += fmt::format("t{}:{}", t->size(), *t);
    } else if (const auto* ints = std::get_if<Ints>(&value)) {
      for (int64_t x : *ints) text += fmt::format("{},", x);
    } else if (const auto* floats = std::get_if<Floats>(&value)) {
      for (float x : *floats) text += fmt::format("{:a},", x);
    } else {
      return "";
    }
    attrs.push_back(std::move(text));
  }
  std::sort(attrs.begin(), attrs.end());
  for (const std::string& a : attrs) key += a + "|";
  return key;
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
    if (same != kNone) changes += Bypass(graph, replacements, id, same);
  }
  replacements.Finish();
  return changes;
}

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
      changes += Bypass(graph, replacements, id, node.inputs[0]);
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

absl::StatusOr<int> MergeEqualNodes(Graph& graph, const PassContext&) {
  int changes = 0;
  std::map<std::string, NodeId> seen;
  Replacements replacements(graph);
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    Node& node = graph.node(id);
    replacements.Update(node);
    if (!node.def || node.def->Is(kRandom) || !node.captures.empty()) continue;
    std::string key = NodeKey(node);
    if (key.empty()) continue;
    auto [it, fresh] = seen.try_emplace(key, id);
    if (fresh) continue;
    const Node& twin = graph.node(it->second);
    bool given_out = std::any_of(node.outputs.begin(), node.outputs.end(),
                                 [&](ValueId v) { return v != kNone && replacements.GivenOut(v); });
    if (given_out) continue;
    bool same_outputs = node.outputs.size() == twin.outputs.size();
    for (size_t i = 0; same_outputs && i < node.outputs.size(); ++i) {
      same_outputs = (node.outputs[i] == kNone) == (twin.outputs[i] == kNone);
    }
    if (!same_outputs) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) replacements.Replace(node.outputs[i], twin.outputs[i]);
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

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
    const Node node = graph.node(*it);
    bool used = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNone && uses[v] > 0; });
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
