// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ranges/range_pattern.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/ops/effects.h"

namespace mge {
namespace {

constexpr int kMaxDepth = 4;  // branches within branches that are selected

// Returns the value of a condition, or none if it is not known.
const Tensor* ConditionOf(const SizeInference& sized, ValueId v) {
  const Value& value = sized.graph().value(v);
  const Tensor& known = value.role == Role::kConstant ? value.constant : sized.known()[static_cast<size_t>(v)];
  return known.defined() && known.dtype() == DType::kBool && known.elements() == 1 ? &known : nullptr;
}

// Returns the nodes with bodies whose first input, the condition of an If, is computed by the graph.
std::vector<NodeId> Conditionals(const Graph& graph) {
  std::vector<NodeId> out;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || node.inputs.empty() || node.inputs[0] == kNone || !HasBody(node)) continue;
    if (graph.value(node.inputs[0]).role == Role::kTemporary) out.push_back(id);
  }
  return out;
}

}  // namespace

bool RangePattern::Selects(const SizeInference& sized) const {
  const std::vector<ValueId>& outputs = sized.graph().outputs();
  const size_t first = outputs.size() - branches.size();
  for (size_t i = 0; i < branches.size(); ++i) {
    const Tensor* condition = ConditionOf(sized, outputs[first + i]);
    if (!condition || condition->Data<bool>()[0] != branches[i]) return false;
  }
  return true;
}

absl::StatusOr<RangePattern> MakeRangePattern(const Graph& graph, std::span<const InputType> types,
                                              std::span<const InputType> sizes, const PlanContext& context,
                                              const StopControl* stop) {
  RangePattern out;
  MGE_ASSIGN_OR_RETURN(out.passed, Specialise(graph, types, context, stop));
  std::vector<Shape> shapes;
  for (const InputType& input : sizes) shapes.push_back(input.shape);
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const std::vector<NodeId> conditionals = Conditionals(out.passed.graph);
    if (conditionals.empty()) break;
    SizeInference sized(std::make_shared<const Graph>(out.passed.graph));
    MGE_RETURN_IF_ERROR(sized.SetInputs(shapes, [&] { return CheckStop(stop); }));
    Graph selected = out.passed.graph;
    const size_t known_before = out.branches.size();
    for (const NodeId id : conditionals) {
      const ValueId v = selected.node(id).inputs[0];
      const Tensor* condition = ConditionOf(sized, v);
      if (!condition) continue;
      const std::vector<ValueId>& outputs = selected.outputs();
      if (std::find(outputs.end() - static_cast<std::ptrdiff_t>(out.branches.size()), outputs.end(), v) == outputs.end()) {
        selected.outputs().push_back(v);
        out.branches.push_back(condition->Data<bool>()[0]);
      }
      selected.node(id).inputs[0] = selected.AddConstant(selected.value(v).name + "_selected", *condition);
    }
    if (out.branches.size() == known_before) break;
    std::vector<std::string> log = std::move(out.passed.pass_log);
    MGE_ASSIGN_OR_RETURN(out.passed, Specialise(selected, types, context, stop));
    out.passed.pass_log.insert(out.passed.pass_log.begin(), log.begin(), log.end());
  }
  return out;
}

}  // namespace mge
