// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/softmax.h"
#include "core/ops/rewrite.h"

namespace mge::rewrite_flattened_softmax {
namespace {

NodeId AddStep(Graph& graph, const Node& like, std::string op, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node step;
  step.op = std::move(op);
  step.name = like.name + "." + step.op;
  step.device = like.device;
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  return graph.AddNode(std::move(step));
}

// Converts Softmax, LogSoftmax and Hardmax of operator sets before 13, where all dimensions from the axis on form one
// row. If only one of them is larger than 1, the newest form means the same. Otherwise flattens the input and restores
// the shape.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);
  if (!node.attrs.Has("_flatten")) return false;
  const TensorType type = graph.value(node.inputs[0]).type;
  if (!type.has_rank || type.dims.empty()) return false;
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(node.attrs.Int("axis", 1), static_cast<int64_t>(type.dims.size())));
  graph.node(id).version = 0;
  graph.node(id).attrs.Remove("_flatten");
  if (std::all_of(type.dims.begin() + axis + 1, type.dims.end(), [](int64_t d) { return d == 1; })) return true;

  ValueId flat = graph.AddTemporary(node.name + ".flat"), result = graph.AddTemporary(node.name + ".rows");
  ValueId shape = graph.AddTemporary(node.name + ".shape");
  NodeId flatten = AddStep(graph, node, "Flatten", {node.inputs[0]}, {flat});
  graph.node(flatten).attrs.Set("axis", axis);
  AddStep(graph, node, "Shape", {node.inputs[0]}, {shape});
  NodeId reshape = AddStep(graph, node, "Reshape", {result, shape}, {node.outputs[0]});
  graph.node(reshape).attrs.Set("allowzero", int64_t{1});
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
