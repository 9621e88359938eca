// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gradient.h"

#include <algorithm>
#include <memory>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the type of the first input whose gradient is wanted.
DType TypeOfGradients(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  const auto first = std::ranges::find(wanted, true) - wanted.begin();
  return graph.value(node.inputs[static_cast<size_t>(first)]).type.dtype;
}

bool CarriesGradient(const Value& v) { return v.kind == ValueKind::kTensor && kFloating.Contains(v.type.dtype); }

absl::Status NoRule(const Node& node, std::string what) {
  return Fail(errors::kUnsupportedFeature, fmt::format("{} has no gradient", what), {.where = NodePlace(node)});
}

// Goes through one graph.
class Backwards {
 public:
  Backwards(Graph& graph, std::vector<ValueId>& gradients, const std::function<GradientSource(NodeId)>& source)
      : graph_(graph), gradients_(gradients), source_(source) {}

  absl::Status Run(std::span<const ValueId> wanted) {
    MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    MarkDependents(order, wanted);
    for (auto id = order.rbegin(); id != order.rend(); ++id) MGE_RETURN_IF_ERROR(Visit(*id));
    return absl::OkStatus();
  }

 private:
  // Marks the values that depend on a wanted one through floating values.
  void MarkDependents(std::span<const NodeId> order, std::span<const ValueId> wanted) {
    depends_.assign(static_cast<size_t>(graph_.value_count()), false);
    for (ValueId v : wanted) depends_[static_cast<size_t>(v)] = true;
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      if (!ReadsDependent(node) && !AnyDepends(node.captures)) continue;
      for (ValueId v : node.outputs) {
        if (v != kNone) depends_[static_cast<size_t>(v)] = CarriesGradient(graph_.value(v));
      }
    }
  }
  // Returns whether a gradient may reach a dependent input of the node.
  bool ReadsDependent(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool fixed = node.def && IsFixedInput(*node.def, i);  // nodes that the caller has added are not bound
      if (Depends(node.inputs[i]) && !fixed) return true;
    }
    return false;
  }
  bool Depends(ValueId v) const { return v != kNone && depends_[static_cast<size_t>(v)]; }
  bool AnyDepends(std::span<const ValueId> values) const {
    return std::ranges::any_of(values, [&](ValueId v) { return Depends(v); });
  }

  // Calls the rule of a node whose outputs have gradients and whose inputs need them.
  absl::Status Visit(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the rule adds nodes
    std::vector<ValueId> gradients;
    for (ValueId v : node.outputs) gradients.push_back(v == kNone ? kNone : gradients_[static_cast<size_t>(v)]);
    if (std::ranges::count(gradients, kNone) == std::ssize(gradients)) return absl::OkStatus();
    if (AnyDepends(node.captures)) return NoRule(node, "the body of a control-flow operator");
    if (!ReadsDependent(node)) return absl::OkStatus();
    const GradientFn rule = RuleOf(*node.def);
    if (!rule) return NoRule(node, fmt::format("operator {}", node.op));
    std::vector<bool> wants;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      wants.push_back(Depends(v) && CarriesGradient(graph_.value(v)) && !IsFixedInput(*node.def, i));
    }
    GradientSource source = source_(id);
    GradientContext context(graph_, source.node, std::move(source.inputs), std::move(gradients), wants);
    if (absl::Status s = rule(context); !s.ok()) return PartsOf(s).where.empty() ? AddWhere(s, NodePlace(node)) : s;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (context.input_gradients()[i] != kNone) Contribute(node.inputs[i], context.input_gradients()[i], node);
    }
    return absl::OkStatus();
  }
  void Contribute(ValueId v, ValueId gradient, const Node& reader) {
    ValueId& sum = gradients_[static_cast<size_t>(v)];
    sum = sum == kNone ? gradient : NodeAdder(graph_, reader).Add("Add", {sum, gradient});
  }

  Graph& graph_;
  std::vector<ValueId>& gradients_;
  const std::function<GradientSource(NodeId)>& source_;
  std::vector<bool> depends_;
};

}  // namespace

GradientFn RuleOf(const OpDef& def) { return def.gradient || !def.body ? def.gradient : ReplacementGradient; }

absl::Status GoBackwards(Graph& graph, std::span<const ValueId> wanted, std::vector<ValueId>& gradients,
                         const std::function<GradientSource(NodeId)>& source) {
  return Backwards(graph, gradients, source).Run(wanted);
}

GradientContext::GradientContext(Graph& graph, NodeId id, std::vector<ValueId> inputs, std::vector<ValueId> gradients,
                                 std::vector<bool> wanted)
    : ExpressionBuilder(graph, graph.node(id), TypeOfGradients(graph, graph.node(id), wanted)),
      graph_(graph),
      id_(id),
      node_(graph.node(id)),
      gradients_(std::move(gradients)),
      input_gradients_(node_.inputs.size(), kNone),
      wanted_(std::move(wanted)) {
  node_.inputs = std::move(inputs);
}

absl::StatusOr<int64_t> GradientContext::Rank(int i) const {
  if (!type(i).has_rank) return Unsupported(fmt::format("an input {} of unknown rank", i));
  return static_cast<int64_t>(type(i).dims.size());
}

const Tensor* GradientContext::constant(int i) const {
  if (!has_input(i)) return nullptr;
  const Value& value = graph_.value(node_.inputs[static_cast<size_t>(i)]);
  if (value.role == Role::kConstant) return &value.constant;
  const bool computed = value.producer != kNone && IsOp(graph_.node(value.producer), "Constant");
  return computed ? graph_.node(value.producer).attrs.TensorOrNull("value") : nullptr;
}

Term GradientContext::y(int i) {
  const auto at = static_cast<size_t>(i);
  if (node_.outputs.size() <= at) node_.outputs.resize(at + 1, kNone);
  if (node_.outputs[at] == kNone) {
    node_.outputs[at] = graph_.AddTemporary(graph_.value(node_.outputs[0]).name);
    graph_.value(node_.outputs[at]).producer = id_;
    graph_.node(id_).outputs = node_.outputs;
  }
  return {*this, node_.outputs[at]};
}

Term GradientContext::dy(int i) { return has_dy(i) ? Term(*this, gradients_[static_cast<size_t>(i)]) : Fill(0, y(i)); }

absl::Status GradientContext::Set(int i, const Term& gradient) {
  if (wants(i)) input_gradients_[static_cast<size_t>(i)] = gradient.id();
  return absl::OkStatus();
}

absl::Status GradientContext::SetByReplacement() {
  // The node alone, as a graph of the inputs that it has.
  auto function = std::make_shared<Graph>();
  Node node = node_;
  node.recomputed = true;
  std::vector<ValueId> inputs;
  Ints wanted;
  std::vector<int> slots;  // of the gradients
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId& v = node.inputs[i];
    if (v == kNone) continue;
    if (wants(static_cast<int>(i))) {
      wanted.push_back(static_cast<int64_t>(inputs.size()));
      slots.push_back(static_cast<int>(i));
    }
    inputs.push_back(v);
    v = function->AddInput(fmt::format("x{}", i), graph_.value(v).type);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const bool has = has_dy(static_cast<int>(i));
    if (has) inputs.push_back(gradients_[i]);
    node.outputs[i] = has || i == 0 ? function->AddTemporary(fmt::format("y{}", i)) : kNone;
    if (has) function->outputs().push_back(node.outputs[i]);
  }
  while (node.outputs.back() == kNone) node.outputs.pop_back();
  function->AddNode(std::move(node));
  Attributes attrs = OneAttribute("function", GraphPtr(std::move(function)));
  attrs.Set("wanted", wanted);
  const std::vector<ValueId> given = AddOurs("FunctionGradient", inputs, slots.size(), std::move(attrs));
  for (size_t k = 0; k < slots.size(); ++k) MGE_RETURN_IF_ERROR(Set(slots[k], {*this, given[k]}));
  return absl::OkStatus();
}

absl::Status GradientContext::Unsupported(std::string what) const {
  return Fail(errors::kUnsupportedFeature, fmt::format("{} has no gradient", what), {.where = NodePlace(node_)});
}

}  // namespace mge
