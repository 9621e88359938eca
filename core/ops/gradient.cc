// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gradient.h"

#include <algorithm>
#include <memory>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the inputs of a node, then its captures.
std::vector<ValueId> OperandsOf(const Node& node) {
  std::vector<ValueId> operands = node.inputs;
  operands.insert(operands.end(), node.captures.begin(), node.captures.end());
  return operands;
}

// Returns the type of the first operand whose gradient is wanted.
DType TypeOfGradients(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  const auto first = std::ranges::find(wanted, true) - wanted.begin();
  return graph.value(OperandsOf(node)[static_cast<size_t>(first)]).type.dtype;
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
    blocked_.resize(static_cast<size_t>(graph_.value_count()));
    for (auto id = order.rbegin(); id != order.rend(); ++id) MGE_RETURN_IF_ERROR(Visit(*id));
    for (ValueId v : wanted) {
      const Operand& reader = blocked_[static_cast<size_t>(v)];
      if (gradients_[static_cast<size_t>(v)] == kNone && reader.node != kNone) return NoGradient(reader);
    }
    return absl::OkStatus();
  }

 private:
  // An input of a node.
  struct Operand {
    NodeId node = kNone;
    size_t slot = 0;
  };

  absl::Status NoGradient(const Operand& reader) const {
    const Node& node = graph_.node(reader.node);
    const InputList& slots = node.def->inputs;
    const int last = slots.size() - 1, slot = static_cast<int>(reader.slot);
    const std::string_view name = last < 0 ? "" : slots[std::min(slot, last)].name;
    return NoRule(node, fmt::format("input {} ('{}') of operator {}", slot, name, node.op));
  }
  // Remembers that a value has no gradient because of this reader.
  void Block(ValueId v, const Operand& reader) {
    if (Depends(v) && blocked_[static_cast<size_t>(v)].node == kNone) blocked_[static_cast<size_t>(v)] = reader;
  }
  // If the outputs have no gradient because of a reader, the inputs have none either.
  void PassBlocked(const Node& node) {
    for (ValueId y : node.outputs) {
      if (y == kNone || blocked_[static_cast<size_t>(y)].node == kNone) continue;
      for (ValueId x : OperandsOf(node)) Block(x, blocked_[static_cast<size_t>(y)]);
    }
  }

  // Marks the values that depend on a wanted one through floating values.
  void MarkDependents(std::span<const NodeId> order, std::span<const ValueId> wanted) {
    depends_.assign(static_cast<size_t>(graph_.value_count()), false);
    for (ValueId v : wanted) depends_[static_cast<size_t>(v)] = true;
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      if (!AnyDepends(OperandsOf(node))) continue;
      for (ValueId v : node.outputs) {
        if (v != kNone) depends_[static_cast<size_t>(v)] = CarriesGradient(graph_.value(v));
      }
    }
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
    if (std::ranges::count(gradients, kNone) == std::ssize(gradients)) {
      PassBlocked(node);
      return absl::OkStatus();
    }
    const std::vector<ValueId> operands = OperandsOf(node);
    std::vector<bool> wants;
    for (ValueId v : operands) wants.push_back(Depends(v) && CarriesGradient(graph_.value(v)));
    if (std::ranges::find(wants, true) == wants.end()) return absl::OkStatus();
    const GradientFn rule = RuleOf(*node.def);
    if (!rule) return NoRule(node, fmt::format("operator {}", node.op));
    GradientSource source = source_(id);
    GradientContext context(graph_, source.node, std::move(source.inputs), std::move(gradients), wants);
    if (absl::Status s = rule(context); !s.ok()) return PartsOf(s).where.empty() ? AddWhere(s, NodePlace(node)) : s;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (context.input_gradients()[i] != kNone) {
        Contribute(operands[i], context.input_gradients()[i], node);
      } else if (wants[i] && rule != ZeroGradient) {
        Block(operands[i], {id, i});
      }
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
  std::vector<Operand> blocked_;  // by value: a reader whose rule sets no gradient for it
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
      input_gradients_(wanted.size(), kNone),
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
  for (size_t i = 0; i < input_gradients_.size(); ++i) {
    const bool captured = i >= node.inputs.size();
    ValueId& v = captured ? node.captures[i - node.inputs.size()] : node.inputs[i];
    if (v == kNone) continue;
    if (wants(static_cast<int>(i)) && input_gradients_[i] == kNone) {
      wanted.push_back(static_cast<int64_t>(inputs.size()));
      slots.push_back(static_cast<int>(i));
    }
    inputs.push_back(v);
    v = function->AddInput(fmt::format("x{}", i), graph_.value(v).type);
  }
  if (wanted.empty()) return absl::OkStatus();
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
