// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/expression.h"
#include "core/train/training.h"

namespace mge {
namespace {

// Adds a state of zeros.
ValueId AddState(Graph& graph, std::string name, TensorType type) {
  const ValueId state = graph.AddTemporary(name, std::move(type));
  graph.value(state).role = Role::kState;
  return state;
}

// Adds the update of one parameter. `w` is the parameter and `g` its gradient.
class Update {
 public:
  Update(Graph& graph, ValueId parameter, ValueId rate, const TrainingOptions& options)
      : graph_(graph),
        o_(options),
        name_(graph.value(parameter).name),
        type_(graph.value(parameter).type),
        b_(graph, name_, type_.dtype),
        parameter_(parameter),
        w_(b_, parameter),
        rate_(type_.dtype == DType::kF32 ? Term(b_, rate) : b_.CastTo(Term(b_, rate), type_.dtype)) {}

  void Sgd(Term g) {
    if (o_.weight_decay > 0) g = g + w_ * o_.weight_decay;
    if (o_.momentum > 0) g = Moved("momentum", [&](const Term& v) { return v * o_.momentum + g; });
    Descend(rate_ * g);
  }
  // `first` and `second` are 1 - beta^step, which correct the means for their first values, zeros.
  void Adam(Term g, const Term& first, const Term& second, bool decoupled) {
    if (o_.weight_decay > 0 && !decoupled) g = g + w_ * o_.weight_decay;
    const Term m = Moved("mean", [&](const Term& s) { return s * o_.beta1 + g * (1 - o_.beta1); });
    const Term v = Moved("variance", [&](const Term& s) { return s * o_.beta2 + g * g * (1 - o_.beta2); });
    Term step = (m / In(first)) / (Unary("Sqrt", v / In(second)) + o_.epsilon);
    if (o_.weight_decay > 0 && decoupled) step = step + w_ * o_.weight_decay;
    Descend(rate_ * step);
  }
  Term Of(ValueId v) { return {b_, v}; }
  Term In(const Term& scalar) {  // of the optimizer, in the parameter's type
    return type_.dtype == DType::kF32 ? Term(b_, scalar.id()) : b_.CastTo(Term(b_, scalar.id()), type_.dtype);
  }

 private:
  // Adds a state of the optimizer and its update. Returns the new elements.
  template <typename Next>
  Term Moved(const char* what, Next next) {
    const ValueId state = AddState(graph_, name_ + "." + what, type_);
    const Term moved = next(Term(b_, state));
    AddAssign(graph_, state, moved.id());
    return moved;
  }
  void Descend(const Term& step) { AddAssign(graph_, parameter_, (w_ - step).id()); }

  Graph& graph_;
  const TrainingOptions& o_;
  const std::string name_;
  const TensorType type_;
  ExpressionBuilder b_;
  const ValueId parameter_;
  Term w_, rate_;
};

// Returns the factor that limits the norm of all gradients: min(1, limit / norm).
Term ClipFactor(ExpressionBuilder& b, std::span<const TrainedValue> values, const Graph& graph, double limit) {
  std::optional<Term> sum;
  for (const TrainedValue& v : values) {
    Term square = b.SumAll(Term(b, v.gradient) * Term(b, v.gradient));
    if (graph.value(v.parameter).type.dtype != DType::kF32) square = b.CastTo(square, DType::kF32);
    sum = sum ? *sum + square : square;
  }
  return Binary("Min", b.Number(1), limit / (Unary("Sqrt", *sum) + 1e-12));
}

}  // namespace

void AddAssign(Graph& graph, ValueId target, ValueId value) {
  Node node;
  node.op = "Assign";
  node.domain = "mge";
  node.name = graph.value(target).name;
  node.inputs = {target, value};
  node.outputs = {graph.AddTemporary(node.name + ".new")};
  graph.AddNode(std::move(node));
}

void AddOptimizer(Graph& graph, std::span<const TrainedValue> values, ValueId rate, const TrainingOptions& options) {
  ExpressionBuilder b(graph, "optimizer", DType::kF32);
  std::optional<Term> clip, first, second;
  if (options.clip_norm > 0) clip = ClipFactor(b, values, graph, options.clip_norm);
  if (options.optimizer != "sgd") {
    const ValueId state = AddState(graph, "optimizer.step", {.dtype = DType::kF32, .has_rank = true});
    const Term step = Term(b, state) + 1;
    AddAssign(graph, state, step.id());
    first = 1 - Binary("Pow", b.Number(options.beta1), step);
    second = 1 - Binary("Pow", b.Number(options.beta2), step);
  }
  for (const TrainedValue& v : values) {
    Update update(graph, v.parameter, rate, options);
    Term gradient = update.Of(v.gradient);
    if (clip) gradient = gradient * update.In(*clip);
    if (options.optimizer == "sgd") {
      update.Sgd(gradient);
    } else {
      update.Adam(gradient, *first, *second, options.optimizer == "adamw");
    }
  }
}

}  // namespace mge
