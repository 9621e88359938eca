// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/loss.h"

#include <limits>
#include <optional>

#include "fmt/format.h"

namespace mge {
namespace {

enum class LossReduction { kMean, kSum, kNone };

absl::StatusOr<LossReduction> ReadReduction(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int choice, ReadChoice(attrs, "reduction", {"mean", "sum", "none"}));
  return static_cast<LossReduction>(choice);
}

struct Sums {
  double loss = 0, weight = 0;
};

// Returns the sums of weighted losses and weights. If `each` is not null, sets it to the weighted loss of every label.
template <typename Label>
absl::StatusOr<Sums> Accumulate(const Shape& shape, std::span<const Label> labels, const double* log_probabilities,
                                const double* weights, std::optional<int64_t> ignored, double* each) {
  const int64_t classes = shape[1];
  int64_t inner = 1;
  for (size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  Sums sums;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t label = labels[i];
    if (each) each[i] = 0;
    if (ignored && label == *ignored) continue;
    if (label < 0 || label >= classes) {
      return Fail(errors::kIndexOutOfRange, fmt::format("label {} at place {} is outside of 0..{}", label, i, classes - 1));
    }
    const int64_t n = static_cast<int64_t>(i) / inner, d = static_cast<int64_t>(i) % inner;
    const double weight = weights ? weights[label] : 1;
    const double loss = -weight * log_probabilities[(n * classes + label) * inner + d];
    if (each) each[i] = loss;
    sums.loss += loss;
    sums.weight += weight;
  }
  return sums;
}

}  // namespace

absl::StatusOr<Shape> LossShape(const Attributes& attrs, std::span<const int64_t> scores, std::span<const int64_t> labels,
                                const Shape* weights) {
  MGE_ASSIGN_OR_RETURN(LossReduction reduction, ReadReduction(attrs));
  if (scores.size() < 2) {
    return Fail(errors::kInvalidNode,
                fmt::format("the scores have shape {}; their rank must be at least 2", ShapeText(scores)));
  }
  Shape wanted(scores.begin(), scores.end());
  wanted.erase(wanted.begin() + 1);
  MGE_RETURN_IF_ERROR(RequireShape("the tensor of labels", labels, wanted));
  if (weights) MGE_RETURN_IF_ERROR(RequireShape("the tensor of weights", *weights, Shape{scores[1]}));
  if (reduction != LossReduction::kNone) return Shape{};
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == kUnknownDim) wanted[i] = labels[i];
  }
  return wanted;
}

absl::Status InferLoss(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  MGE_ASSIGN_OR_RETURN(LossReduction reduction, ReadReduction(ctx.attrs()));
  const TensorType& scores = ctx.input(0);
  TensorType loss = UnrankedType(scores.dtype);
  if (reduction != LossReduction::kNone) loss = MakeType(scores.dtype, {});
  if (scores.has_rank && ctx.input(1).has_rank) {
    const Shape* weights = ctx.has_input(2) && ctx.input(2).has_rank ? &ctx.input(2).dims : nullptr;
    MGE_ASSIGN_OR_RETURN(Shape shape, LossShape(ctx.attrs(), scores.dims, ctx.input(1).dims, weights));
    loss = MakeType(scores.dtype, std::move(shape));
  }
  ctx.SetOutput(0, std::move(loss));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ToDouble(EvalContext& ctx, const Tensor& tensor) {
  if (tensor.dtype() == DType::kF64) return tensor;
  MGE_ASSIGN_OR_RETURN(Tensor wide, Tensor::Create(DType::kF64, tensor.shape(), ctx.allocator()));
  std::span<double> out = wide.MutableData<double>();
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const T> in = tensor.Data<T>();
    for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<double>(in[i]);
  });
  return wide;
}

absl::Status EvalLoss(EvalContext& ctx, const Tensor& log_probabilities) {
  const Tensor& labels = ctx.input(1);
  const Shape& shape = ctx.input(0).shape();
  Tensor weights;
  if (ctx.has_input(2)) {
    MGE_ASSIGN_OR_RETURN(weights, ToDouble(ctx, ctx.input(2)));
  }
  MGE_ASSIGN_OR_RETURN(LossReduction reduction, ReadReduction(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Shape loss_shape,
                       LossShape(ctx.attrs(), shape, labels.shape(), ctx.has_input(2) ? &ctx.input(2).shape() : nullptr));
  MGE_ASSIGN_OR_RETURN(Tensor * loss, ctx.Output(0, ctx.input(0).dtype(), std::move(loss_shape)));
  Tensor each;
  if (reduction == LossReduction::kNone) {
    MGE_ASSIGN_OR_RETURN(each, Scratch<double>(ctx, labels.elements()));
  }
  std::optional<int64_t> ignored;
  if (ctx.attrs().Has("ignore_index")) ignored = ctx.attrs().Int("ignore_index");
  auto run = [&](auto values) {
    return Accumulate(shape, values, log_probabilities.Data<double>().data(),
                      weights.defined() ? weights.Data<double>().data() : nullptr, ignored,
                      each.defined() ? each.MutableData<double>().data() : nullptr);
  };
  MGE_ASSIGN_OR_RETURN(Sums sums, labels.dtype() == DType::kI32 ? run(labels.Data<int32_t>()) : run(labels.Data<int64_t>()));
  // The mean of no labels is NaN.
  const double total = reduction == LossReduction::kMean ? sums.loss / sums.weight : sums.loss;
  DispatchFloating(loss->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<T> out = loss->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<T>(static_cast<Compute<T>>(each.defined() ? each.Data<double>()[i] : total));
    }
  });
  return absl::OkStatus();
}

absl::Status AddLoss(FunctionBody& f, const Term& log_probabilities) {
  MGE_ASSIGN_OR_RETURN(const LossReduction reduction, ReadReduction(f.attrs()));
  const DType type = f.dtype(0), index = f.dtype(1);
  const bool narrow = type == DType::kF16 || type == DType::kBF16;  // sums of 16 bits would overflow
  const auto wide = [&](const Term& x) { return narrow ? f.CastTo(x, DType::kF32) : x; };
  const auto number = [&](double x) { return f.Number(narrow ? DType::kF32 : type, x); };
  ValueId labels = f.input(1), ignored = kNone;
  if (f.attrs().Has("ignore_index")) {
    ignored = f.Add("Equal", {labels, f.Number(index, static_cast<double>(f.attrs().Int("ignore_index")))});
    labels = f.Add("Where", {ignored, f.Number(index, 0), labels});
  }
  // A negative label is an error, and no index from the end.
  const ValueId classes = f.Add("Gather", {f.ShapeOf(log_probabilities), f.Constant(Tensor::Scalar<int64_t>(1))});
  const ValueId negative = f.Add("Less", {labels, f.Number(index, 0)});
  labels = f.Add("Where", {negative, f.Cast(classes, DType::kI64, index), labels});
  const ValueId indices = f.Add("Unsqueeze", {labels, f.Integers({1})});
  const ValueId chosen = f.Add("GatherElements", {log_probabilities.id(), indices}, IntAttribute("axis", 1));
  Term each = -wide(f.Of("Squeeze", {chosen, f.Integers({1})}));
  std::optional<Term> weight;
  if (f.has_input(2)) {
    weight = wide(f.Of("Gather", {f.input(2), labels}));
    each = each * *weight;
  }
  if (ignored != kNone) {
    const Term zero(f, number(0));
    each = f.Where(ignored, zero, each);
    weight = f.Where(ignored, zero, weight ? *weight : Term(f, number(1)));
  }
  if (reduction == LossReduction::kSum) each = f.SumAll(each);
  if (reduction == LossReduction::kMean) each = weight ? f.SumAll(each) / f.SumAll(*weight) : f.MeanAll(each);
  if (narrow) each = f.CastTo(each, type);
  f.Result(0, "Identity", {each.id()});
  return absl::OkStatus();
}

}  // namespace mge
