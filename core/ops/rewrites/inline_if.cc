// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "core/ops/rewrite.h"

namespace mge::rewrite_inline_if {
namespace {

// Returns the branch that a constant condition selects, or null if the condition is not known.
GraphPtr TakenBranch(const Graph& graph, const Node& node) {
  const Value& condition = graph.value(node.inputs[0]);
  if (condition.role != Role::kConstant || condition.constant.elements() != 1) return nullptr;
  return node.attrs.GraphOrNull(condition.constant.Data<bool>()[0] ? "then_branch" : "else_branch");
}

// Copies the values and nodes of the branch into the graph. They then produce the outputs of the If.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);
  if (node.op != "If" || !node.domain.empty()) return false;
  const GraphPtr body = TakenBranch(graph, node);
  if (!body) return false;

  std::vector<ValueId> map(body->value_count(), kNone);
  std::span<const ValueId> captures = CapturesOf(node, *body);
  for (size_t k = 0; k < captures.size(); ++k) map[body->inputs()[k]] = captures[k];
  // If a node of the branch produces an output, it produces the If's output directly. Other outputs get an Identity.
  std::vector<size_t> passed_on;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ValueId inner = body->outputs()[i];
    if (node.outputs[i] == kNone) continue;
    if (map[inner] == kNone && body->value(inner).producer != kNone) {
      map[inner] = node.outputs[i];
    } else {
      passed_on.push_back(i);
    }
  }
  auto mapped = [&](ValueId v) {
    if (v == kNone || map[v] != kNone) return v == kNone ? kNone : map[v];
    const Value& source = body->value(v);
    ValueId copy = graph.AddTemporary(source.name, source.type);
    graph.value(copy).kind = source.kind;
    graph.value(copy).role = source.role;
    graph.value(copy).constant = source.constant;
    return map[v] = copy;
  };
  for (NodeId inner = 0; inner < body->node_count(); ++inner) {
    if (body->node(inner).dead) continue;
    Node copy = body->node(inner);
    for (auto* list : {&copy.inputs, &copy.outputs, &copy.captures}) {
      for (ValueId& v : *list) v = mapped(v);
    }
    if (copy.device.empty()) copy.device = node.device;
    graph.AddNode(std::move(copy));
  }
  for (size_t i : passed_on) {
    Node identity;
    identity.op = "Identity";
    identity.name = node.name;
    identity.inputs = {mapped(body->outputs()[i])};
    identity.outputs = {node.outputs[i]};
    graph.AddNode(std::move(identity));
  }
  graph.RemoveNode(id);
  return true;
}

}  // namespace

MGE_REWRITE(inline_if) = {
    .name = "inline_if", .doc = "Replaces an If with a known condition by the selected branch.", .apply = Apply};

}  // namespace mge::rewrite_inline_if
