// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_same_type_cast {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "Cast") && !IsOp(node, "CastLike")) return false;
  const ValueId x = node.inputs[0];
  const DType dtype = graph.value(x).type.dtype;
  if (dtype == DType::kUndefined || graph.value(node.outputs[0]).type.dtype != dtype) return false;
  Replace(graph, id, "Identity", {x});
  return true;
}

}  // namespace

MGE_REWRITE(same_type_cast) = {
    .name = "same_type_cast", .doc = "Replaces a cast to the type that its input has by the input.", .apply = Apply};

}  // namespace mge::rewrite_same_type_cast
