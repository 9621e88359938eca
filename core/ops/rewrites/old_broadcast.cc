// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/infer_checks.h"
#include "core/ops/rewrite.h"

namespace mge::rewrite_old_broadcast {
namespace {

// Converts an operator that broadcasts B from an axis on to its newest form, for which backends have kernels. An
// Unsqueeze gives B its trailing dimensions. Requires known ranks.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  bool per_channel = node.attrs.Has("_per_channel");
  if ((!node.attrs.Has("_axis") && !per_channel) || !node.domain.empty()) return false;
  const TensorType &a = graph.value(node.inputs[0]).type, &b = graph.value(node.inputs[1]).type;
  if (!a.has_rank || !b.has_rank) return false;
  int64_t rank = static_cast<int64_t>(a.dims.size()), own = static_cast<int64_t>(b.dims.size());
  int64_t trailing = 0;
  if (per_channel) {
    trailing = own == 1 && rank > 2 ? rank - 2 : 0;
  } else {
    int64_t axis = node.attrs.Int("_axis");
    trailing = rank - own - (axis < 0 ? axis + rank : axis);
  }
  if (trailing < 0) return false;  // the shape rule reports this error
  if (trailing > 0) {
    Ints axes;
    for (int64_t d = 0; d < trailing; ++d) axes.push_back(own + d);
    Node unsqueeze;
    unsqueeze.op = "Unsqueeze";
    unsqueeze.name = node.name + ".align";
    unsqueeze.inputs = {node.inputs[1]};
    unsqueeze.device = node.device;
    unsqueeze.outputs = {graph.AddTemporary(unsqueeze.name)};
    SetConstantInput(graph, unsqueeze, 1, "axes", Tensor::Vector<int64_t>(axes));
    graph.node(id).inputs[1] = unsqueeze.outputs[0];
    graph.AddNode(std::move(unsqueeze));
  }
  graph.node(id).version = 0;
  graph.node(id).attrs.Remove("_axis");
  graph.node(id).attrs.Remove("_per_channel");
  return true;
}

}  // namespace

MGE_REWRITE(old_broadcast) = {.name = "old_broadcast",
                              .doc = "Converts broadcasting from an axis (before operator set 7) to its newest form.",
                              .apply = Apply};

}  // namespace mge::rewrite_old_broadcast
