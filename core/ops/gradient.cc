// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gradient.h"

#include <algorithm>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the type of the first input whose gradient is wanted.
DType TypeOfGradients(const Graph& graph, const Node& node, const std::vector<bool>& wanted) {
  const auto first = std::ranges::find(wanted, true) - wanted.begin();
  return graph.value(node.inputs[static_cast<size_t>(first)]).type.dtype;
}

}  // namespace

GradientContext::GradientContext(Graph& graph, NodeId id, std::vector<ValueId> inputs, std::vector<ValueId> gradients,
                                 std::vector<bool> wanted)
    : ExpressionBuilder(graph, graph.node(id), TypeOfGradients(graph, graph.node(id), wanted)),
      graph_(graph),
      id_(id),
      node_(graph.node(id)),
      gradients_(std::move(gradients)),
      given_(node_.inputs.size(), kNone),
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

absl::Status GradientContext::Give(int i, const Term& gradient) {
  if (wants(i)) given_[static_cast<size_t>(i)] = gradient.id();
  return absl::OkStatus();
}

absl::Status GradientContext::Unsupported(std::string what) const {
  return Fail(errors::kUnsupportedFeature, fmt::format("{} has no gradient", what), {.where = NodePlace(node_)});
}

}  // namespace mge
