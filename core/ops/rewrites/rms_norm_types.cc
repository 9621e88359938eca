// SPDX-License-Identifier: Apache-2.0
// Backends have kernels of RMSNormalization for one type. Where the scale has another type than X, both get the wider type,
// and the result is rounded to the scale's.
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_rms_norm_types {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "RMSNormalization")) return false;
  const DType x = graph.value(node.inputs[0]).type.dtype, scale = graph.value(node.inputs[1]).type.dtype;
  if (x == scale || !kFloating.Contains(x) || !kFloating.Contains(scale)) return false;
  const DType wide = x == DType::kF64 || scale == DType::kF64 ? DType::kF64 : DType::kF32;

  NodeAdder nodes(graph, node);
  auto widened = [&](ValueId v, DType dtype) { return dtype == wide ? v : nodes.Add("Cast", {v}, CastTo(wide)); };
  const std::vector<ValueId> inputs = {widened(node.inputs[0], x), widened(node.inputs[1], scale)};
  if (scale == wide) {
    const NodeId norm = Replace(graph, id, "RMSNormalization", inputs);
    graph.node(norm).attrs = node.attrs;
  } else {
    const ValueId y = nodes.Add("RMSNormalization", inputs, node.attrs);
    const NodeId cast = Replace(graph, id, "Cast", {y});
    graph.node(cast).attrs = CastTo(scale);
  }
  return true;
}

}  // namespace

MGE_REWRITE(rms_norm_types) = {.name = "rms_norm_types",
                               .doc = "Computes in float32 or float64 if X and the scale have different types.",
                               .apply = Apply};

}  // namespace mge::rewrite_rms_norm_types
