// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_swi_glu {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "SwiGLU")) return false;
  if (!graph.value(node.inputs[0]).type.IsStatic() || !graph.value(node.inputs[1]).type.IsStatic()) return false;
  const ValueId gate = NodeAdder(graph, node).Add("Swish", {node.inputs[0]}, node.attrs);
  Replace(graph, id, "Mul", {gate, node.inputs[1]});
  return true;
}

}  // namespace

MGE_REWRITE(swi_glu) = {
    .name = "swi_glu", .doc = "Replaces a SwiGLU by a Swish and a product, which backends have.", .apply = Apply};

}  // namespace mge::rewrite_swi_glu
