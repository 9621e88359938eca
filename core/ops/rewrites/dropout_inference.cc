// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrite.h"

namespace mge::rewrite_dropout_inference {
namespace {

bool IsUsed(const Graph& graph, ValueId value) {
  return value != kNone && (graph.OutputUses(value) > 0 || graph.AnyReader(value, [](NodeId) { return true; }));
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (node.op != "Dropout" || !node.domain.empty()) return false;
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    const Value& training = graph.value(node.inputs[2]);
    if (training.role != Role::kConstant || training.constant.elements() != 1) return false;
    if (training.constant.Data<bool>()[0]) return false;
  }
  if (node.outputs.size() > 1 && IsUsed(graph, node.outputs[1])) return false;
  Node identity;
  identity.op = "Identity";
  identity.name = node.name;
  identity.device = node.device;
  identity.inputs = {node.inputs[0]};
  identity.outputs = {node.outputs[0]};
  graph.RemoveNode(id);
  graph.value(identity.outputs[0]).dead = false;
  graph.AddNode(std::move(identity));
  return true;
}

}  // namespace

MGE_REWRITE(dropout_inference) = {.name = "dropout_inference",
                                  .doc = "Replaces a Dropout outside of training by its input if its mask is unused.",
                                  .apply = Apply};

}  // namespace mge::rewrite_dropout_inference
