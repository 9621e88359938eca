// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_swi_glu {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "SwiGLU")) return false;
  if (!graph.value(node.inputs[0]).type.IsStatic() || !graph.value(node.inputs[1]).type.IsStatic()) return false;
  Node swish;
  swish.op = "Swish";
  swish.name = node.name;
  swish.device = node.device;
  swish.attrs = node.attrs;
  swish.inputs = {node.inputs[0]};
  const ValueId gate = graph.AddTemporary(graph.value(node.outputs[0]).name);
  swish.outputs = {gate};
  graph.AddNode(std::move(swish));
  Replace(graph, id, "Mul", {gate, node.inputs[1]});
  return true;
}

}  // namespace

MGE_REWRITE(swi_glu) = {
    .name = "swi_glu", .doc = "Replaces a SwiGLU by a Swish and a product, which backends have.", .apply = Apply};

}  // namespace mge::rewrite_swi_glu
