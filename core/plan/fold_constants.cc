// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/known_values.h"
#include "core/plan/pass.h"
#include "core/plan/replacements.h"

namespace mge {
namespace {

// A folded value of more bytes than this stays a node: the model's file stays small in memory.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;

bool HasBody(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(),
                     [](const auto& item) { return std::holds_alternative<GraphPtr>(item.second); });
}

bool Foldable(const Graph& graph, const Node& node) {
  if (node.dead || !node.def || !node.def->eval || node.def->Is(kRandom) || HasBody(node)) return false;
  for (ValueId v : node.inputs) {
    if (v != kNone && graph.value(v).role != Role::kConstant) return false;
  }
  for (ValueId v : node.outputs) {
    if (v == kNone) continue;
    const Value& out = graph.value(v);
    if (out.kind != ValueKind::kTensor) return false;
    if (out.type.IsStatic()) {
      auto bytes = NumBytes(out.type.dtype, out.type.dims);
      if (!bytes.ok() || *bytes > kMaxFoldedBytes) return false;
    } else if (node.def->Is(kNoFold)) {
      return false;  // size unknown, and made to grow
    }
  }
  return true;
}

// Replaces what shape inference already knows, such as Shape(x) of a static x: no evaluator could fold it, for x is no
// constant. Nothing is computed here.
absl::StatusOr<int> ReplaceKnown(Graph& graph) {
  bool arithmetic = false;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    arithmetic |= !node.dead && node.def && node.def->Is(kHostOnly);
  }
  if (!arithmetic) return 0;
  std::vector<Tensor> known;
  MGE_RETURN_IF_ERROR(InferKnownValues(graph, &known));
  auto is_known = [&](ValueId v) {
    return v == kNone || (known[v].defined() && graph.value(v).kind == ValueKind::kTensor);
  };
  int changes = 0;
  Replacements replacements(graph);
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    const Node node = graph.node(id);
    if (node.dead || !node.def || node.def->Is(kRandom) || HasBody(node) || node.outputs.empty()) continue;
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) continue;
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      replacements.Replace(v, graph.AddConstant(graph.value(v).name, known[v]));
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

}  // namespace

absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context) {
  MGE_ASSIGN_OR_RETURN(int changes, ReplaceKnown(graph));
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  Replacements replacements(graph);
  for (NodeId id : order) {
    replacements.Update(graph.node(id));
    if (!Foldable(graph, graph.node(id))) continue;
    const Node node = graph.node(id);
    std::vector<HostValue> inputs;
    for (ValueId v : node.inputs) {
      HostValue value;
      if (v != kNone) value.tensor = graph.value(v).constant;
      inputs.push_back(std::move(value));
    }
    auto results = Evaluate(node, inputs, *context.allocator);
    // What fails or does not fit the budget stays a node: the run reports it where the user can see the node.
    if (!results.ok()) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const Tensor& tensor = (*results)[i].tensor;
      std::string name = graph.value(node.outputs[i]).name;
      ValueId constant = graph.AddConstant(name, tensor);
      replacements.Replace(node.outputs[i], constant);
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

}  // namespace mge
