// SPDX-License-Identifier: Apache-2.0
#include "core/train/optimizer.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/element_range.h"
#include "core/ops/expression.h"
#include "core/train/training.h"
#include "fmt/format.h"
#include "mge/optimizers.hpp"

namespace mge {
namespace {

constexpr double kFirstScale = 65536, kMinScale = 1;
constexpr int kStepsUntilGrowth = 2000;

bool IsNarrow(DType type) { return type == DType::kF16 || type == DType::kBF16; }

// Adds a node that changes the elements of `target` in its memory. Returns the new elements.
ValueId AddUpdate(Graph& graph, const char* op, ValueId target, ValueId value) {
  Node node;
  node.op = op;
  node.domain = "mge";
  node.name = graph.value(target).name;
  node.inputs = {target, value};
  const ValueId updated = graph.AddTemporary(node.name + ".new", graph.value(target).type);
  node.outputs = {updated};
  graph.AddNode(std::move(node));
  return updated;
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

// Adafactor's numbers: the decay of its variance by steps, the limits of a variance and of a parameter's size.
// Source: https://arxiv.org/abs/1804.04235 with the defaults of torch.optim.Adafactor.
constexpr double kFactoredDecay = -0.8, kMinVariance = 1.1920929e-07, kMinSize = 1e-3;

// The number of the step from 1, and 1 - beta^step for both betas, which corrects moments for their first values, zeros. Empty if
// the rule does not count steps.
struct Corrections {
  std::optional<Term> step, first, second;
};

bool CountsSteps(UpdateRule rule) {
  return rule == UpdateRule::kMoments || rule == UpdateRule::kMomentsDecayedApart || rule == UpdateRule::kLayerwiseMoments ||
         rule == UpdateRule::kFactored;
}

constexpr char kAverage[] = ".average";

// Returns the first group whose pattern a name fits, or one that changes nothing.
ParameterGroup GroupOf(const std::string& name, const TrainingOptions& options) {
  for (const ParameterGroup& group : options.groups) {
    if (FitsPattern(name, group.pattern)) return group;
  }
  return {};
}

// Adds the update of one parameter. `w` is the parameter or its wide copy, and `g` its gradient.
class Update {
 public:
  Update(Graph& graph, const TrainedValue& value, const Shared& shared, const TrainingOptions& options,
         const ReplicaExchange& exchange)
      : graph_(graph),
        o_(options),
        shared_(shared),
        name_(graph.value(value.parameter).name),
        type_(TypeOf(graph, value.parameter)),
        part_(PartFor(type_, exchange)),
        b_(graph, name_, type_.dtype),
        parameter_(value.parameter),
        w_(b_, MasterOf(value.parameter)),
        rate_(In(shared.rate)),
        gradient_(Wide(value.gradient)),
        divided_(value.divided) {
    const ParameterGroup group = GroupOf(name_, options);
    if (group.rate != 1) rate_ = rate_ * group.rate;
    decay_ = group.weight_decay < 0 ? options.weight_decay : group.weight_decay;
  }

  // The gradient in the type of the update, without the scale of the loss. clip() multiplies it.
  const Term& gradient() const { return gradient_; }
  void Clip(const Term& factor) { gradient_ = gradient_ * In(factor.id()); }
  // Adds the state with the gradient.
  void KeepGradient() {
    kept_gradient_ = AddState(graph_, name_ + ".gradient", type_);
    kept_ = gradient_.id();
  }
  // Limits each element of the gradient to [-limit, limit].
  void ClipElements(double limit) {
    gradient_ = Binary("Max", Binary("Min", gradient_, b_.Number(limit)), b_.Number(-limit));
  }
  // Replaces the gradient by its mean over the last steps. KeepSum() keeps their sum, or zeros after the last of them.
  void Accumulate(int64_t steps) {
    accumulated_ = AddState(graph_, name_ + ".accumulated", type_);
    gradient_ = Term(b_, accumulated_) + gradient_;
    sum_ = gradient_.id();
    gradient_ = gradient_ / static_cast<double>(steps);
  }
  void KeepSum(ValueId is_last) { Write(accumulated_, b_.Where(is_last, b_.Number(0), Term(b_, sum_))); }

  void Step(const Optimizer& optimizer, const Corrections& corrections) {
    if (kept_gradient_ != kNone) Write(kept_gradient_, Term(b_, kept_));
    if (part_) {
      if (!divided_) gradient_ = Divided(gradient_);
      if (!IsNarrow(graph_.value(parameter_).type.dtype)) w_ = Divided(w_);
    }
    switch (optimizer.step) {
      case UpdateRule::kMomentum: return Descend(rate_ * MomentumStep(optimizer));
      case UpdateRule::kMoments: return Descend(rate_ * MomentsStep(optimizer, Decayed(gradient_), corrections));
      case UpdateRule::kMomentsDecayedApart: return Descend(rate_ * Decayed(MomentsStep(optimizer, gradient_, corrections)));
      case UpdateRule::kNesterov: return Descend(rate_ * NesterovStep(optimizer));
      case UpdateRule::kSquares: return Descend(rate_ * SquaresStep(optimizer));
      case UpdateRule::kVariance: return Descend(rate_ * VarianceStep(optimizer));
      case UpdateRule::kSign: return Descend(rate_ * Decayed(SignStep(optimizer)));
      case UpdateRule::kLayerwiseMoments:
        return Descend(rate_ * Trusted(Decayed(MomentsStep(optimizer, gradient_, corrections))));
      case UpdateRule::kFactored: return Descend(FactoredStep(optimizer, *corrections.step));
    }
  }

  // The replica's part of the parameter after the update; kNone: it updates the whole one, and Finish() must not be called.
  ValueId updated_part() const { return updated_part_; }
  int64_t elements() const { return Elements(type_.dims); }
  // Writes the parameter, whose parts all replicas have updated.
  void Finish(ValueId updated) {
    const Term whole(b_, b_.Reshape(updated, type_.dims));
    if (o_.average_decay > 0) Follow(whole);
    const DType own = graph_.value(parameter_).type.dtype;
    AddAssign(graph_, parameter_, b_.Cast(whole.id(), FollowsWide() ? type_.dtype : own, own));
  }

 private:
  // Returns the replica's part of the elements; nothing: it updates all of them.
  static std::optional<ElementRange> PartFor(const TensorType& type, const ReplicaExchange& exchange) {
    if (!exchange.gather || Elements(type.dims) < int64_t{exchange.replicas}) return std::nullopt;
    return PartOfElements(Elements(type.dims), exchange.replica, exchange.replicas);
  }
  ValueId Flat(ValueId x) { return b_.Reshape(x, {elements()}); }
  // Returns the replica's part of a value, as a vector.
  Term Divided(const Term& x) {
    return b_.Of("Slice", {Flat(x.id()), b_.Integers({part_->begin}), b_.Integers({part_->begin + part_->count})});
  }
  // The average follows the parameter before it is rounded to 16 bits.
  bool FollowsWide() const { return o_.average_decay > 0; }
  TensorType StateType() const {
    return part_ ? TensorType{.dtype = type_.dtype, .has_rank = true, .dims = {part_->count}} : type_;
  }

  Term Decayed(const Term& x) { return decay_ > 0 ? x + w_ * decay_ : x; }
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
  Term NesterovStep(const Optimizer& optimizer) {
    const Term g = Decayed(gradient_);
    if (o_.momentum == 0) return g;
    return g + Moved(optimizer.slots[0], [&](const Term& v) { return v * o_.momentum + g; }) * o_.momentum;
  }
  Term SquaresStep(const Optimizer& optimizer) {
    const Term g = Decayed(gradient_);
    return g / (Unary("Sqrt", Moved(optimizer.slots[0], [&](const Term& s) { return s + g * g; })) + o_.epsilon);
  }
  Term VarianceStep(const Optimizer& optimizer) {
    const Term g = Decayed(gradient_);
    const Term v = Moved(optimizer.slots[0], [&](const Term& s) { return s * o_.beta2 + g * g * (1 - o_.beta2); });
    const Term step = g / (Unary("Sqrt", v) + o_.epsilon);
    if (o_.momentum == 0) return step;
    return Moved(optimizer.slots[1], [&](const Term& s) { return s * o_.momentum + step; });
  }
  // The sign of a mean that counts the gradient more than the state does.
  Term SignStep(const Optimizer& optimizer) {
    const Term g = gradient_;
    std::optional<Term> before;
    Moved(optimizer.slots[0], [&](const Term& s) {
      before = s;
      return s * o_.beta2 + g * (1 - o_.beta2);
    });
    return Unary("Sign", *before * o_.beta1 + g * (1 - o_.beta1));
  }
  // Scales a step to the norm of the parameter, unless one of the norms is 0.
  Term Trusted(const Term& step) {
    const Term size = Unary("Sqrt", b_.SumAll(w_ * w_)), length = Unary("Sqrt", b_.SumAll(step * step));
    return step * b_.Where(size * length > 0, size / length, b_.Number(1));
  }
  Term Rms(const Term& x) { return Unary("Sqrt", b_.MeanAll(x * x)); }
  // The rate is a part of the step.
  Term FactoredStep(const Optimizer& optimizer, const Term& count) {
    const Term t = In(count.id()), g = gradient_, decay = Binary("Pow", t, b_.Number(kFactoredDecay));
    const Term variance = Binary("Max", FactoredVariance(optimizer, g * g, decay), b_.Number(kMinVariance * kMinVariance));
    const Term step = g / Unary("Sqrt", variance);
    const Term size = Binary("Max", Rms(w_), b_.Number(kMinSize));
    const Term rate = size * Binary("Min", rate_, 1 / Unary("Sqrt", t)) / Binary("Max", Rms(step), b_.Number(1));
    return decay_ > 0 ? step * rate + w_ * rate_ * decay_ : step * rate;
  }
  // Returns the mean square of the gradient: of a matrix, the product of those of its rows and columns.
  Term FactoredVariance(const Optimizer& optimizer, const Term& squares, const Term& decay) {
    const auto rank = static_cast<int64_t>(type_.dims.size());
    auto next = [&](const Term& now) { return [&, now](const Term& s) { return s + (now - s) * decay; }; };
    if (rank < 2) return Moved(optimizer.slots[0], next(squares));
    TensorType rows = type_, columns = type_;
    rows.dims[static_cast<size_t>(rank - 1)] = columns.dims[static_cast<size_t>(rank - 2)] = 1;
    const Term of_rows = Moved(optimizer.slots[0], next(b_.Mean(squares, {rank - 1})), rows);
    const Term of_columns = Moved(optimizer.slots[1], next(b_.Mean(squares, {rank - 2})), columns);
    return of_rows * of_columns / Binary("Max", b_.Mean(of_rows, {rank - 2}), b_.Number(kMinVariance));
  }
  static TensorType TypeOf(const Graph& graph, ValueId parameter) {
    TensorType type = graph.value(parameter).type;
    if (IsNarrow(type.dtype)) type.dtype = DType::kF32;
    return type;
  }
  // Returns the value that is updated: the parameter, or a new copy of float32.
  ValueId MasterOf(ValueId parameter) {
    if (!IsNarrow(graph_.value(parameter).type.dtype)) return parameter;
    const Tensor whole = Widened(graph_.value(parameter).constant);
    if (!part_) return AddFreshConstant(graph_, name_ + ".master", whole);
    const auto part = whole.Data<float>().subspan(static_cast<size_t>(part_->begin), static_cast<size_t>(part_->count));
    return AddFreshConstant(graph_, name_ + ".master", Tensor::Vector<float>(part));
  }
  Term In(ValueId scalar) {  // float32, in the type of the update
    return type_.dtype == DType::kF32 ? Term(b_, scalar) : b_.CastTo(Term(b_, scalar), type_.dtype);
  }
  Term Wide(ValueId gradient) {
    const bool narrow = IsNarrow(graph_.value(parameter_).type.dtype);
    const Term g = narrow ? b_.CastTo(Term(b_, gradient), DType::kF32) : Term(b_, gradient);
    return shared_.inverse_scale == kNone ? g : g * In(shared_.inverse_scale);
  }
  // Writes the new elements of a state, unless the step does not count. Returns the state's elements after that.
  Term Write(ValueId state, const Term& moved) {
    const ValueId written = shared_.finite == kNone ? moved.id() : b_.Where(shared_.finite, moved, Term(b_, state)).id();
    return Term(b_, AddUpdate(graph_, "Assign", state, written));
  }
  // Adds a state of the optimizer and its update. Returns the new elements.
  template <typename Next>
  Term Moved(std::string_view slot, Next next) {
    return Moved(slot, next, StateType());
  }
  template <typename Next>
  Term Moved(std::string_view slot, Next next, const TensorType& type) {
    const ValueId state = AddState(graph_, fmt::format("{}.{}", name_, slot), type);
    const Term moved = next(Term(b_, state)), written = Write(state, moved);
    return o_.inplace_update ? written : moved;
  }
  void Descend(const Term& step) {
    if (part_) return DescendPart(w_ - step);
    const Term moved = o_.inplace_update ? Increased(-step) : w_ - step;
    if (o_.average_decay > 0) Follow(moved);
    if (!o_.inplace_update) Write(w_.id(), moved);
    if (w_.id() == parameter_) return;
    const bool counts = shared_.finite == kNone || o_.inplace_update;  // else the parameter keeps its elements
    const Term kept = counts ? moved : b_.Where(shared_.finite, moved, w_);
    AddAssign(graph_, parameter_, b_.CastTo(kept, graph_.value(parameter_).type.dtype).id());
  }
  // Adds to the parameter in its memory, unless the step does not count. Returns its elements after that.
  Term Increased(const Term& change) {
    const ValueId added = (shared_.finite == kNone ? change : b_.Where(shared_.finite, change, b_.Number(0))).id();
    return Term(b_, AddUpdate(graph_, "Accumulate", w_.id(), added));
  }

  void DescendPart(const Term& moved) {
    const Term kept = shared_.finite == kNone ? moved : b_.Where(shared_.finite, moved, w_);
    const DType own = graph_.value(parameter_).type.dtype;
    if (IsNarrow(own)) AddAssign(graph_, w_.id(), kept.id());
    updated_part_ = b_.Cast(kept.id(), type_.dtype, FollowsWide() ? type_.dtype : own);
  }

  // Adds the average of the parameter, which begins with its first elements.
  void Follow(const Term& moved) {
    const Tensor first = graph_.value(parameter_).constant;
    const bool narrow = IsNarrow(first.dtype());
    const Term average(b_, AddFreshConstant(graph_, name_ + kAverage, narrow ? Widened(first) : first));
    Write(average.id(), average * o_.average_decay + moved * (1 - o_.average_decay));
  }

  Graph& graph_;
  const TrainingOptions& o_;
  const Shared& shared_;
  const std::string name_;
  const TensorType type_;
  const std::optional<ElementRange> part_;  // of the elements, which this replica updates; nullopt: it updates all
  ExpressionBuilder b_;
  const ValueId parameter_;
  Term w_, rate_, gradient_;
  const bool divided_;  // gradient_ is the replica's part
  double decay_ = 0;
  ValueId accumulated_ = kNone, sum_ = kNone, kept_gradient_ = kNone, kept_ = kNone, updated_part_ = kNone;
};

// Adds the count of the steps whose gradients are summed. Returns a bool: the step is the last of them, which updates.
ValueId AddLastOfSteps(Graph& graph, ExpressionBuilder& b, int64_t steps, ValueId counts) {
  const ValueId state = AddState(graph, "optimizer.accumulated", {.dtype = DType::kF32, .has_rank = true});
  const Term old(b, state), next = old + 1;
  const ValueId is_last = next > static_cast<double>(steps) - 0.5;
  const Term moved = b.Where(is_last, b.Number(0), next);
  AddAssign(graph, state, counts == kNone ? moved.id() : b.Where(counts, moved, old).id());
  return is_last;
}

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

// Lets all replicas have the parameters of which each has updated a part.
void GatherParts(Graph& graph, const std::vector<std::unique_ptr<Update>>& updates, const ReplicaExchange& exchange) {
  std::vector<ValueId> parts;
  std::vector<int64_t> elements;
  std::vector<Update*> divided;
  for (const auto& update : updates) {
    if (update->updated_part() == kNone) continue;
    divided.push_back(update.get());
    parts.push_back(update->updated_part());
    elements.push_back(update->elements());
  }
  // Some at a time: the memory of a gather is free when its parameters are written.
  ValueId token = divided.empty() ? kNone : NodeAdder(graph, "optimizer").Constant(Tensor::Scalar<int64_t>(0));
  for (size_t begin = 0, end = 0; begin < divided.size(); begin = end) {
    int64_t size = 0;
    while (end < divided.size() && size < exchange.gather_elements) size += elements[end++];
    const size_t count = end - begin;
    const std::vector<ValueId> whole =
        exchange.gather(graph, token, std::span(parts).subspan(begin, count), std::span(elements).subspan(begin, count));
    token = whole[0];
    for (size_t i = 0; i < count; ++i) divided[begin + i]->Finish(whole[i + 1]);
  }
}

}  // namespace

void AddAssign(Graph& graph, ValueId target, ValueId value) { AddUpdate(graph, "Assign", target, value); }

void UseAverage(Graph& graph, ValueId parameter) {
  Value& value = graph.value(parameter);
  const std::string name = value.name + kAverage;
  if (!IsNarrow(value.type.dtype)) {
    value.name = name;
    return;
  }
  const DType type = value.type.dtype;
  const ValueId average = AddFreshConstant(graph, name, Widened(value.constant));
  graph.ReplaceUses(parameter, NodeAdder(graph, name).Cast(average, DType::kF32, type));
}

ValueId AddLossScale(Graph& graph) {
  return AddFreshConstant(graph, "optimizer.loss_scale", Tensor::Scalar<float>(static_cast<float>(kFirstScale)));
}

bool UpdatesElementsAlone(const TrainingOptions& options) {
  const UpdateRule rule = FindOptimizer(options.optimizer)->step;
  return rule != UpdateRule::kLayerwiseMoments && rule != UpdateRule::kFactored;
}

bool NeedsWholeGradients(const TrainingOptions& options) {
  return options.clip_norm > 0 || options.on_nan == "skip" || options.accumulate > 1 || options.keep_gradients;
}

absl::Status AddOptimizer(Graph& graph, std::span<const TrainedValue> values, ValueId rate, const StepGuards& guards,
                          const TrainingOptions& options, const ReplicaExchange& exchange) {
  ExpressionBuilder b(graph, "optimizer", DType::kF32);
  const ValueId scale = guards.loss_scale;
  Shared shared = {.rate = rate, .finite = guards.finite_loss};
  if (scale != kNone) shared.inverse_scale = Unary("Reciprocal", Term(b, scale)).id();
  std::vector<std::unique_ptr<Update>> updates;
  for (const TrainedValue& v : values) updates.push_back(std::make_unique<Update>(graph, v, shared, options, exchange));
  for (const auto& update : updates) {
    if (options.accumulate > 1) update->Accumulate(options.accumulate);
    if (options.keep_gradients) update->KeepGradient();
    if (options.clip_value > 0) update->ClipElements(options.clip_value);
  }
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
  if (options.accumulate > 1) {
    const ValueId is_last = AddLastOfSteps(graph, b, options.accumulate, shared.finite);
    for (const auto& update : updates) update->KeepSum(is_last);
    shared.finite = shared.finite == kNone ? is_last : b.Of("And", {shared.finite, is_last}).id();
  }
  const Optimizer& optimizer = *FindOptimizer(options.optimizer);
  Corrections corrections;
  if (CountsSteps(optimizer.step)) {
    const ValueId state = AddState(graph, "optimizer.step", {.dtype = DType::kF32, .has_rank = true});
    const Term step = Term(b, state) + 1;
    AddAssign(graph, state, shared.finite == kNone ? step.id() : b.Where(shared.finite, step, Term(b, state)).id());
    corrections.step = step;
    corrections.first = 1 - Binary("Pow", b.Number(options.beta1), step);
    corrections.second = 1 - Binary("Pow", b.Number(options.beta2), step);
  }
  for (const auto& update : updates) update->Step(optimizer, corrections);
  GatherParts(graph, updates, exchange);
  return absl::OkStatus();
}

}  // namespace mge
