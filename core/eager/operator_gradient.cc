// SPDX-License-Identifier: Apache-2.0
// The gradient of an eager operator, as another eager operator.
//
// The gradient rules add nodes behind the operator's own. These read the operator's inputs and outputs. The outputs are known
// when a gradient is computed, so they become inputs of the new operator, and the nodes that compute them are left out.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/eager/eager_operator.h"
#include "core/ops/effects.h"
#include "core/ops/gradient.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Marks everything that `outputs` depend on.
class Needed {
 public:
  Needed(const Graph& graph, std::span<const ValueId> outputs)
      : values_(static_cast<size_t>(graph.value_count()), false), nodes_(static_cast<size_t>(graph.node_count()), false) {
    std::vector<ValueId> open(outputs.begin(), outputs.end());
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (v == kNone || values_[static_cast<size_t>(v)]) continue;
      values_[static_cast<size_t>(v)] = true;
      const NodeId id = graph.value(v).producer;
      if (id == kNone || nodes_[static_cast<size_t>(id)]) continue;
      nodes_[static_cast<size_t>(id)] = true;
      const Node& node = graph.node(id);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      open.insert(open.end(), node.captures.begin(), node.captures.end());
    }
  }
  bool value(ValueId v) const { return values_[static_cast<size_t>(v)]; }
  bool node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }

 private:
  std::vector<bool> values_, nodes_;
};

constexpr int64_t kMaxConstantElementsOfRules = 1024;
constexpr size_t kMaxGradients = 1024;

}  // namespace

absl::StatusOr<std::shared_ptr<const OperatorGradient>> EagerOperator::GradientOf(const std::vector<bool>& has_gradient,
                                                                                  const std::vector<bool>& wanted,
                                                                                  std::span<const Tensor* const> host) {
  std::string key;
  for (const bool b : has_gradient) key += b ? '1' : '0';
  for (const bool b : wanted) key += b ? '1' : '0';
  std::vector<const Tensor*> constants;
  bool any = false;
  for (size_t i = 0; i < host.size(); ++i) {
    const bool use =
        host[i] && !wanted[i] && host[i]->dtype() != DType::kString && host[i]->elements() <= kMaxConstantElementsOfRules;
    constants.push_back(use ? host[i] : nullptr);
    any = any || use;
  }
  std::lock_guard lock(mutex_);
  if (!gradient_needs_constants_) {
    if (const auto at = gradients_.find(key); at != gradients_.end()) return at->second;
    absl::StatusOr<std::shared_ptr<const OperatorGradient>> made = MakeGradient(has_gradient, wanted, {});
    if (made.ok()) return gradients_[key] = *std::move(made);
    if (!any || ErrorId(made.status()) != errors::kUnsupportedFeature.id) return made;
  }
  // The rule may need to know the elements.
  for (const Tensor* t : constants) {
    if (!t) continue;
    key += fmt::format(" {}:", ShapeText(t->shape()));
    key.append(static_cast<const char*>(t->data()), static_cast<size_t>(t->bytes()));
  }
  if (const auto at = gradients_.find(key); at != gradients_.end()) return at->second;
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const OperatorGradient> made, MakeGradient(has_gradient, wanted, constants));
  gradient_needs_constants_ = gradient_needs_constants_ || any;
  if (gradients_.size() >= kMaxGradients) gradients_.clear();
  return gradients_[key] = std::move(made);
}

absl::StatusOr<std::shared_ptr<const OperatorGradient>> EagerOperator::MakeGradient(
    const std::vector<bool>& has_gradient, const std::vector<bool>& wanted, std::span<const Tensor* const> constants) const {
  using Source = OperatorGradient::Source;
  const size_t inputs = wanted.size(), outputs = graph_.outputs().size();
  Graph graph = graph_;
  std::vector<ValueId> list(inputs + 2 * outputs, kNone);  // the values that OperatorGradient::operands are indices of
  for (size_t k = 0; k < slots_.size(); ++k) {
    const size_t i = slots_[k];
    Value& x = graph.value(graph.inputs()[k]);
    if (i < constants.size() && constants[i] && !wanted[i]) {
      x.role = Role::kConstant;
      x.constant = *constants[i];
    } else {
      list[i] = graph.inputs()[k];
    }
  }
  for (size_t i = 0; i < outputs; ++i) {
    const Value y = graph.value(graph.outputs()[i]);
    list[inputs + i] = graph.AddInput(y.name + " saved", y.type);
    if (has_gradient[i]) list[inputs + outputs + i] = graph.AddInput(y.name + " gradient", y.type);
  }
  std::vector<ValueId> sums(static_cast<size_t>(graph.value_count()), kNone);
  for (size_t i = 0; i < outputs; ++i) sums[static_cast<size_t>(graph.outputs()[i])] = list[inputs + outputs + i];
  std::vector<ValueId> by;
  for (size_t i = 0; i < inputs; ++i) {
    if (wanted[i] && list[i] != kNone) by.push_back(list[i]);
  }
  MGE_RETURN_IF_ERROR(GoBackwards(graph, by, sums, [&](NodeId id) { return GradientSource{id, graph.node(id).inputs}; }));
  // The rules read the saved outputs.
  std::vector<ValueId> results;
  for (size_t i = 0; i < inputs; ++i) {
    results.push_back(wanted[i] && list[i] != kNone ? sums[static_cast<size_t>(list[i])] : kNone);
  }
  const std::vector<ValueId> old_outputs = graph.outputs();
  graph.outputs() = results;
  std::erase(graph.outputs(), kNone);
  for (size_t i = 0; i < outputs; ++i) {
    graph.ReplaceUses(old_outputs[i], list[inputs + i]);
    std::ranges::replace(results, old_outputs[i], list[inputs + i]);
  }

  auto out = std::make_shared<OperatorGradient>();
  std::vector<ValueId> computed;
  for (size_t i = 0; i < inputs; ++i) {
    Source source;
    if (results[i] != kNone) {
      const auto given = std::ranges::find(list, results[i]);
      if (given != list.end()) {
        source = {Source::Kind::kOperand, static_cast<size_t>(given - list.begin())};
      } else {
        auto at = std::ranges::find(computed, results[i]);
        if (at == computed.end()) at = computed.insert(computed.end(), results[i]);
        source = {Source::Kind::kResult, static_cast<size_t>(at - computed.begin())};
      }
    }
    if (wanted[i]) out->gradients.push_back(source);
  }
  if (computed.empty()) return out;

  graph.outputs() = computed;
  const Needed needed(graph, computed);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).dead) continue;
    if (!needed.node(id)) {
      graph.RemoveNode(id);
    } else if (graph.node(id).def && graph.node(id).def->Is(kRandom)) {
      return Fail(errors::kUnsupportedFeature,
                  fmt::format("random operator {} has no gradient in eager mode", graph.node(id).op),
                  {.what = "its rule computes the operator again, which would draw other numbers",
                   .where = NodePlace(graph.node(id))});
    }
  }
  graph.inputs().clear();
  std::vector<size_t> slots;
  for (size_t k = 0; k < list.size(); ++k) {
    if (list[k] == kNone) continue;
    if (!needed.value(list[k])) {
      graph.value(list[k]).dead = true;
      continue;
    }
    graph.inputs().push_back(list[k]);
    slots.push_back(out->operands.size());
    out->operands.push_back(k);
  }
  MGE_RETURN_IF_ERROR(graph.Compact());
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  const bool again = name_.starts_with("gradient of ");
  out->op = std::make_shared<EagerOperator>(again ? "second " + name_ : "gradient of " + name_, std::move(graph),
                                            std::move(slots));
  return out;
}

}  // namespace mge
