// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/rewrite.h"

namespace mge {
namespace {

// The branch that a known condition takes, and where its captures begin in the node's list.
const Graph* TakenBranch(const Graph& graph, const Node& node, size_t* first_capture) {
  const Value& condition = graph.value(node.inputs[0]);
  if (condition.role != Role::kConstant || condition.constant.elements() != 1) return nullptr;
  std::string_view taken = condition.constant.Data<bool>()[0] ? "then_branch" : "else_branch";
  *first_capture = 0;
  for (const auto& [name, value] : node.attrs) {
    const GraphPtr* body = std::get_if<GraphPtr>(&value);
    if (!body || !*body) continue;
    if (name == taken) return body->get();
    for (ValueId v : (*body)->inputs()) *first_capture += (*body)->value(v).role == Role::kCapture;
  }
  return nullptr;
}

// Copies the branch's values and nodes into the graph; what the If yielded is then produced by them.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != "If" || !node.domain.empty()) return false;
  size_t captured = 0;
  const Graph* body = TakenBranch(graph, node, &captured);
  if (!body) return false;

  std::vector<ValueId> map(body->value_count(), kNone);
  for (ValueId v : body->inputs()) map[v] = node.captures[captured++];
  // An output that a node of the branch produces takes the If's own value; others are passed on.
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

MGE_REWRITE(inline_if) = {.name = "inline_if",
                          .doc = "An If whose condition is known becomes the branch that it takes.",
                          .apply = Apply};

}  // namespace mge
