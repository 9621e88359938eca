// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_cast_like {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "CastLike")) return false;
  const DType to = graph.value(node.outputs[0]).type.dtype;
  if (to == DType::kUndefined) return false;
  Attributes attrs = node.attrs;
  attrs.Set("to", static_cast<int64_t>(to));
  Replace(graph, id, "Cast", {node.inputs[0]}, std::move(attrs));
  return true;
}

}  // namespace

MGE_REWRITE(cast_like) = {
    .name = "cast_like", .doc = "Replaces a CastLike by a Cast, for which backends have kernels.", .apply = Apply};

}  // namespace mge::rewrite_cast_like
