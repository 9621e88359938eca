// SPDX-License-Identifier: Apache-2.0
#include "core/train/inference_form.h"

namespace mge {
namespace {

void NormalizeByRunningStatistics(Graph& graph, NodeId id) {
  if (graph.node(id).attrs.Int("training_mode") == 0) return;
  graph.node(id).attrs.Set("training_mode", int64_t{0});
  const Node node = graph.node(id);  // a copy: replacing uses changes nodes
  for (size_t i = 1; i < node.outputs.size() && i < 3; ++i) {
    if (node.outputs[i] == kNone) continue;
    graph.ReplaceUses(node.outputs[i], node.inputs[i + 2]);
    graph.value(node.outputs[i]).dead = true;
  }
  graph.node(id).outputs.resize(1);
}

void DropNothing(Graph& graph, NodeId id) {
  std::vector<ValueId>& inputs = graph.node(id).inputs;
  if (inputs.size() < 3 || inputs[2] == kNone || graph.value(inputs[2]).role == Role::kInput) return;
  inputs.resize(2);
}

}  // namespace

void MakeInferenceForm(Graph& graph) {
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    const Node& node = graph.node(id);
    if (node.dead || !node.domain.empty()) continue;
    if (node.op == "BatchNormalization") NormalizeByRunningStatistics(graph, id);
    if (node.op == "Dropout") DropNothing(graph, id);
  }
}

}  // namespace mge
