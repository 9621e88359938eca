// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/softmax.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_flattened_softmax {
namespace {

// Converts Softmax, LogSoftmax and Hardmax of operator sets before 13, where all dimensions from the axis on form one
// row. If only one of them is larger than 1, the newest form means the same. Otherwise flattens the input and restores
// the shape.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);
  if (!node.attrs.Has("_flatten")) return false;
  const TensorType type = graph.value(node.inputs[0]).type;
  if (!type.has_rank || type.dims.empty()) return false;
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(node.attrs.Int("axis"), static_cast<int64_t>(type.dims.size())));
  graph.node(id).version = 0;
  graph.node(id).attrs.Remove("_flatten");
  if (std::all_of(type.dims.begin() + axis + 1, type.dims.end(), [](int64_t d) { return d == 1; })) return true;

  NodeAdder nodes(graph, node);
  const ValueId flat = nodes.Add("Flatten", {node.inputs[0]}, IntAttribute("axis", axis));
  const ValueId shape = nodes.Add("Shape", {node.inputs[0]}), result = graph.AddTemporary(node.name + ".rows");
  nodes.AddTo({node.outputs[0]}, "Reshape", {result, shape}, IntAttribute("allowzero", 1));
  Node& softmax = graph.node(id);
  softmax.attrs.Set("axis", int64_t{1});
  softmax.inputs[0] = flat;
  softmax.outputs[0] = result;
  graph.value(result).producer = id;
  return true;
}

}  // namespace

MGE_REWRITE(flattened_softmax) = {.name = "flattened_softmax",
                                  .doc = "Converts Softmax over several dimensions, from operator sets before 13.",
                                  .apply = Apply};

}  // namespace mge::rewrite_flattened_softmax
