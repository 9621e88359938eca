// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/expression.h"
#include "core/train/training.h"
#include "fmt/format.h"
#include "mge/optimizers.hpp"

namespace mge {
namespace {

constexpr double kFirstScale = 65536, kMinScale = 1;
constexpr int kStepsUntilGrowth = 2000;

bool IsNarrow(DType type) { return type == DType::kF16 || type == DType::kBF16; }

// Adds a node that changes the elements of `target` in its memory.
void AddUpdate(Graph& graph, const char* op, ValueId target, ValueId value) {
  Node node;
  node.op = op;
  node.domain = "mge";
  node.name = graph.value(target).name;
  node.inputs = {target, value};
  node.outputs = {graph.AddTemporary(node.name + ".new")};
  graph.AddNode(std::move(node));
}

// Adds a state of zeros.
ValueId AddState(Graph& graph, std::string name, TensorType type) {
  const ValueId state = graph.AddTemporary(name, std::move(type));
  graph.value(state).role = Role::kState;
  return state;
}

// Returns the elements of 16 bits as float32.
Tensor Widened(const Tensor& narrow) {
  std::vector<float> wide;
  DispatchFloating(narrow.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T x : narrow.Data<T>()) wide.push_back(static_cast<float>(x));
  });
  return Tensor::Of<float>(narrow.shape(), wide);
}

// The values that all updates read.
struct Shared {
  ValueId rate;
  ValueId inverse_scale = kNone;  // factor of the gradients; kNone: 1
  ValueId finite = kNone;         // bool: the step counts; kNone: it does
};

// 1 - beta^step for both betas, which corrects moments for their first values, zeros. Empty if the optimizer reads no betas.
struct Corrections {
  std::optional<Term> first, second;
};

// Adds the update of one parameter. `w` is the parameter or its wide copy, and `g` its gradient.
class Update {
 public:
  Update(Graph& graph, const TrainedValue& value, const Shared& shared, const TrainingOptions& options)
      : graph_(graph),
        o_(options),
        shared_(shared),
        name_(graph.value(value.parameter).name),
        type_(TypeOf(graph, value.parameter)),
        b_(graph, name_, type_.dtype),
        parameter_(value.parameter),
        w_(b_, MasterOf(value.parameter)),
        rate_(In(shared.rate)),
        gradient_(Wide(value.gradient)) {}

  // The gradient in the type of the update, without the scale of the loss. clip() multiplies it.
  const Term& gradient() const { return gradient_; }
  void Clip(const Term& factor) { gradient_ = gradient_ * In(factor.id()); }

  void Step(const Optimizer& optimizer, const Corrections& corrections) {
    switch (optimizer.step) {
      case UpdateRule::kMomentum: return Descend(rate_ * MomentumStep(optimizer));
      case UpdateRule::kMoments: return Descend(rate_ * MomentsStep(optimizer, Decayed(gradient_), corrections));
      case UpdateRule::kMomentsDecayedApart: return Descend(rate_ * Decayed(MomentsStep(optimizer, gradient_, corrections)));
    }
  }

 private:
  Term Decayed(const Term& x) { return o_.weight_decay > 0 ? x + w_ * o_.weight_decay : x; }
  Term MomentumStep(const Optimizer& optimizer) {
    const Term g = Decayed(gradient_);
    if (o_.momentum == 0) return g;
    return Moved(optimizer.slots[0], [&](const Term& v) { return v * o_.momentum + g; });
  }
  Term MomentsStep(const Optimizer& optimizer, const Term& g, const Corrections& corrections) {
    const Term m = Moved(optimizer.slots[0], [&](const Term& s) { return s * o_.beta1 + g * (1 - o_.beta1); });
    const Term v = Moved(optimizer.slots[1], [&](const Term& s) { return s * o_.beta2 + g * g * (1 - o_.beta2); });
    return (m / In(corrections.first->id())) / (Unary("Sqrt", v / In(corrections.second->id())) + o_.epsilon);
  }
  static TensorType TypeOf(const Graph& graph, ValueId parameter) {
    TensorType type = graph.value(parameter).type;
    if (IsNarrow(type.dtype)) type.dtype = DType::kF32;
    return type;
  }
  // Returns the value that is updated: the parameter, or a new copy of float32.
  ValueId MasterOf(ValueId parameter) {
    if (!IsNarrow(graph_.value(parameter).type.dtype)) return parameter;
    return AddFreshConstant(graph_, name_ + ".master", Widened(graph_.value(parameter).constant));
  }
  Term In(ValueId scalar) {  // float32, in the type of the update
    return type_.dtype == DType::kF32 ? Term(b_, scalar) : b_.CastTo(Term(b_, scalar), type_.dtype);
  }
  Term Wide(ValueId gradient) {
    const bool narrow = IsNarrow(graph_.value(parameter_).type.dtype);
    const Term g = narrow ? b_.CastTo(Term(b_, gradient), DType::kF32) : Term(b_, gradient);
    return shared_.inverse_scale == kNone ? g : g * In(shared_.inverse_scale);
  }
  // Writes the new elements of a state, unless the step does not count.
  void Write(ValueId state, const Term& moved) {
    AddAssign(graph_, state, shared_.finite == kNone ? moved.id() : b_.Where(shared_.finite, moved, Term(b_, state)).id());
  }
  // Adds a state of the optimizer and its update. Returns the new elements.
  template <typename Next>
  Term Moved(std::string_view slot, Next next) {
    const ValueId state = AddState(graph_, fmt::format("{}.{}", name_, slot), type_);
    const Term moved = next(Term(b_, state));
    Write(state, moved);
    return moved;
  }
  void Descend(const Term& step) {
    const Term moved = w_ - step;
    if (o_.inplace_update) {
      const Term change = -step;
      AddUpdate(graph_, "Accumulate", w_.id(),
                (shared_.finite == kNone ? change : b_.Where(shared_.finite, change, b_.Number(0))).id());
    } else {
      Write(w_.id(), moved);
    }
    if (w_.id() == parameter_) return;
    const Term kept = shared_.finite == kNone ? moved : b_.Where(shared_.finite, moved, w_);
    AddAssign(graph_, parameter_, b_.CastTo(kept, graph_.value(parameter_).type.dtype).id());
  }

  Graph& graph_;
  const TrainingOptions& o_;
  const Shared& shared_;
  const std::string name_;
  const TensorType type_;
  ExpressionBuilder b_;
  const ValueId parameter_;
  Term w_, rate_, gradient_;
};

// Returns the sum of the squares of all gradients.
Term SumOfSquares(ExpressionBuilder& b, const std::vector<std::unique_ptr<Update>>& updates) {
  std::optional<Term> sum;
  for (const auto& update : updates) {
    const Term g = update->gradient();
    Term square(b, g.builder().SumAll(g * g).id());
    if (g.builder().dtype() != DType::kF32) square = b.CastTo(square, DType::kF32);
    sum = sum ? *sum + square : square;
  }
  return *sum;
}

// Adds the new scale of the loss and the count of steps since it changed.
void MoveScale(Graph& graph, ExpressionBuilder& b, ValueId scale, ValueId finite) {
  const ValueId count = AddState(graph, "optimizer.finite_steps", {.dtype = DType::kF32, .has_rank = true});
  const Term zero = b.Number(0), one = Term(b, count) + 1, old(b, scale);
  const ValueId grows = one > kStepsUntilGrowth - 0.5;
  AddAssign(graph, count, b.Where(finite, b.Where(grows, zero, one), zero).id());
  const Term halved = Binary("Max", old * 0.5, b.Number(kMinScale));
  AddAssign(graph, scale, b.Where(finite, b.Where(grows, old * 2, old), halved).id());
}

}  // namespace

void AddAssign(Graph& graph, ValueId target, ValueId value) { AddUpdate(graph, "Assign", target, value); }

ValueId AddLossScale(Graph& graph) {
  return AddFreshConstant(graph, "optimizer.loss_scale", Tensor::Scalar<float>(static_cast<float>(kFirstScale)));
}

void AddOptimizer(Graph& graph, std::span<const TrainedValue> values, ValueId rate, const StepGuards& guards,
                  const TrainingOptions& options) {
  ExpressionBuilder b(graph, "optimizer", DType::kF32);
  const ValueId scale = guards.loss_scale;
  Shared shared = {.rate = rate, .finite = guards.finite_loss};
  if (scale != kNone) shared.inverse_scale = Unary("Reciprocal", Term(b, scale)).id();
  std::vector<std::unique_ptr<Update>> updates;
  for (const TrainedValue& v : values) updates.push_back(std::make_unique<Update>(graph, v, shared, options));
  if (scale != kNone || options.clip_norm > 0 || options.on_nan == "skip") {
    const Term squares = SumOfSquares(b, updates);
    const ValueId finite = squares < std::numeric_limits<double>::infinity();
    if (scale != kNone) MoveScale(graph, b, scale, finite);
    if (shared.finite != kNone) shared.finite = b.Of("And", {finite, shared.finite}).id();
    if (scale != kNone && shared.finite == kNone) shared.finite = finite;
    if (options.clip_norm > 0) {  // the factor that limits the norm: min(1, limit / norm)
      const Term factor = Binary("Min", b.Number(1), options.clip_norm / (Unary("Sqrt", squares) + 1e-12));
      for (const auto& update : updates) update->Clip(factor);
    }
  }
  const Optimizer& optimizer = *FindOptimizer(options.optimizer);
  Corrections corrections;
  if (ReadsOption(optimizer, "beta1")) {
    const ValueId state = AddState(graph, "optimizer.step", {.dtype = DType::kF32, .has_rank = true});
    const Term step = Term(b, state) + 1;
    AddAssign(graph, state, shared.finite == kNone ? step.id() : b.Where(shared.finite, step, Term(b, state)).id());
    corrections.first = 1 - Binary("Pow", b.Number(options.beta1), step);
    corrections.second = 1 - Binary("Pow", b.Number(options.beta2), step);
  }
  for (const auto& update : updates) update->Step(optimizer, corrections);
}

}  // namespace mge
