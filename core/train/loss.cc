// SPDX-License-Identifier: Apache-2.0
#include "core/train/loss.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/expression.h"
#include "core/train/training.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Computes max(z, 0) - z * t + log(1 + exp(-|z|)), which overflows for no score z.
Term BinaryCrossEntropy(const Term& z, const Term& t) {
  return Unary("Relu", z) - z * t + Unary("Log", 1 + Unary("Exp", -Unary("Abs", z)));
}
// Does the same, with the part of the label 1 times `weight`: (1 - t) * z + (1 + (weight - 1) * t) * log(1 + exp(-z)).
Term BinaryCrossEntropy(const Term& z, const Term& t, const Term& weight) {
  const Term log = Unary("Relu", -z) + Unary("Log", 1 + Unary("Exp", -Unary("Abs", z)));
  return (1 - t) * z + (1 + (weight - 1) * t) * log;
}

// The scores of an output, and the dimension of its classes; 0: none, or not known.
struct Scores {
  ValueId value;
  int64_t axis = 0;
};

// Returns the scores behind an output of probabilities: the input of the Softmax or Sigmoid that computes it. The logarithm of
// probabilities near 0 would be less exact.
Scores ScoresOf(const Graph& graph, ValueId output, std::string_view op) {
  const Node* node = Producer(graph, output, op);
  if (!node) return {output};
  const int64_t axis = node->attrs.Int("axis");
  return {node->inputs[0], axis < 0 ? axis + static_cast<int64_t>(graph.value(output).type.dims.size()) : axis};
}

// Returns numbers as a constant of the builder's type.
Term Numbers(ExpressionBuilder& b, const Shape& shape, const std::vector<double>& numbers) {
  return {b, b.Cast(b.Constant(Tensor::Of<double>(shape, numbers)), DType::kF64, b.dtype())};
}

// The logarithms of the classes' probabilities, and which labels are numbers of classes.
struct ClassTerms {
  ClassTerms(ExpressionBuilder& builder, const Term& scores, ValueId numbers, int64_t dimension, int64_t rank,
             const std::vector<double>& class_weights)
      : b(builder),
        labels(numbers),
        axis(dimension),
        logs(b.Of("LogSoftmax", {scores.id()}, IntAttribute("axis", axis))),
        weights(class_weights) {
    const ValueId classes = b.Add("Gather", {b.ShapeOf(scores), b.Integers({axis})});
    const ValueId zero = b.Integers({0});
    counts = b.Add("And", {b.Add("GreaterOrEqual", {labels, zero}), b.Add("Less", {labels, classes})});
    wide.assign(static_cast<size_t>(rank), 1);
    wide[static_cast<size_t>(axis)] = static_cast<int64_t>(weights.size());
  }

  Term SumCounted(const Term& each) const { return b.SumAll(b.Where(counts, each, b.Number(0))); }
  // Returns the sum of the mean cross-entropy with every class, times its weight.
  Term SumOverClasses() const {
    const Term weighted = weights.empty() ? logs : logs * Numbers(b, wide, weights);
    return SumCounted(-b.Of("ReduceMean", {weighted.id(), b.Integers({axis})}, IntAttribute("keepdims", 0)));
  }
  // Returns the sum of the cross-entropies, each times the weight of its class, and the sum of these weights.
  std::pair<Term, Term> WeightedSum() const {
    const ValueId valid = b.Add("Where", {counts, labels, b.Integers({0})});
    const ValueId place = b.Add("Unsqueeze", {valid, b.Integers({axis})});
    const ValueId picked = b.Add("GatherElements", {logs.id(), place}, IntAttribute("axis", axis));
    const Term log = b.Of("Squeeze", {picked, b.Integers({axis})});
    const Term weight = b.Of("Gather", {Numbers(b, {static_cast<int64_t>(weights.size())}, weights).id(), valid});
    return {SumCounted(-log * weight), SumCounted(weight)};
  }

  ExpressionBuilder& b;
  const ValueId labels;
  const int64_t axis;
  const Term logs;
  const std::vector<double>& weights;
  ValueId counts = kNone;
  Shape wide;  // of the weights, to be broadcast to the scores
};

// Computes t * (log t - log p), which is 0 where t is.
Term RelativeEntropy(ExpressionBuilder& b, const Term& logs, const Term& t) {
  const ValueId counts = t > 0;
  const Term own = Unary("Log", b.Where(counts, t, b.Number(1)));
  return b.Where(counts, t * (own - logs), b.Number(0));
}

// Computes half the square of small errors; larger ones have the slope `delta`.
Term Huber(ExpressionBuilder& b, const Term& error, double delta) {
  const Term size = Unary("Abs", error);
  return b.Where(size > delta, (size - delta / 2) * delta, error * error * 0.5);
}

}  // namespace

absl::StatusOr<AddedLoss> AddLoss(Graph& graph, ValueId output, const TrainingOptions& options) {
  const std::string& name = options.loss;
  const Value value = graph.value(output);  // a copy: adding values moves it
  auto unfit = [&](std::string what) {
    return Fail(errors::kBadInput, fmt::format("loss '{}' does not fit output '{}'", name, value.name),
                {.what = std::move(what), .where = "training options"});
  };
  if (value.kind != ValueKind::kTensor || !kFloating.Contains(value.type.dtype) || !value.type.has_rank) {
    return unfit(
        fmt::format("its type is {}; it must be a floating tensor of known rank", TypeText(value.kind, value.type)));
  }
  const bool tokens = name == "token_cross_entropy", classes = tokens || name == "cross_entropy";
  const auto rank = static_cast<int64_t>(value.type.dims.size());
  TensorType type = value.type;
  Scores scores = {output};
  if (classes) {
    if (rank < 2) return unfit(fmt::format("its type is {}; scores have the dimensions [N,C,...]", type.ToString()));
    const Scores before = ScoresOf(graph, output, "Softmax");
    scores.axis = tokens ? rank - 1 : rank == 2 ? 1 : before.axis;
    if (before.axis == scores.axis) scores = before;
    type.dtype = DType::kI64;
    const auto axis = static_cast<std::ptrdiff_t>(std::max<int64_t>(scores.axis, 1));
    type.dims.erase(type.dims.begin() + axis);
    if (!type.symbols.empty()) type.symbols.erase(type.symbols.begin() + axis);
    if (scores.axis == 0) {  // the labels' shape tells
      std::fill(type.dims.begin() + 1, type.dims.end(), kUnknownDim);
      if (!type.symbols.empty()) std::fill(type.symbols.begin() + 1, type.symbols.end(), "");
    }
  }
  const ValueId labels = graph.AddInput(options.labels_name, type);
  // A loss of 16 bits would be too coarse.
  const bool narrow = value.type.dtype == DType::kF16 || value.type.dtype == DType::kBF16;
  ExpressionBuilder b(graph, "loss", narrow ? DType::kF32 : value.type.dtype);
  if (name == "binary_cross_entropy") scores = ScoresOf(graph, output, "Sigmoid");
  if (name == "kl_divergence") {
    scores = ScoresOf(graph, output, "Softmax");
    if (scores.axis == 0) scores.axis = ScoresOf(graph, output, "LogSoftmax").axis;
    if (rank < 1) return unfit("it is a scalar; probabilities need a dimension of classes");
  }
  const auto weights = static_cast<int64_t>(options.class_weights.size());
  const std::string last = "token_cross_entropy takes the last one";
  const auto wide = [&](ValueId v) { return narrow ? b.CastTo(Term(b, v), DType::kF32) : Term(b, v); };
  const Term y = wide(scores.value), t = classes ? Term(b, labels) : wide(labels);
  if (classes) {
    if (options.label_smoothing > 0 && scores.axis == 0) {
      return unfit("label_smoothing needs to know which dimension has the classes; " + last);
    }
    if (!options.class_weights.empty()) {
      if (scores.axis == 0) return unfit("class_weights need to know which dimension has the classes; " + last);
      if (const int64_t size = value.type.dims[static_cast<size_t>(scores.axis)]; size != kUnknownDim && size != weights) {
        return unfit(fmt::format("there are {} class_weights for {} classes", weights, size));
      }
      const ClassTerms terms(b, y, labels, scores.axis, rank, options.class_weights);
      auto [sum, count] = terms.WeightedSum();
      if (options.label_smoothing > 0) {
        sum = sum * (1 - options.label_smoothing) + terms.SumOverClasses() * options.label_smoothing;
      }
      return AddedLoss{sum.id(), count.id(), labels};
    }
    const std::vector<ValueId> parts = b.AddOurs("CrossEntropy", {y.id(), t.id()}, 2, IntAttribute("axis", scores.axis));
    if (options.label_smoothing == 0) return AddedLoss{parts[0], parts[1], labels};
    const Term smooth = ClassTerms(b, y, labels, scores.axis, rank, options.class_weights).SumOverClasses();
    const Term sum = Term(b, parts[0]) * (1 - options.label_smoothing) + smooth * options.label_smoothing;
    return AddedLoss{sum.id(), parts[1], labels};
  }
  if (name == "kl_divergence") {
    const int64_t axis = scores.axis > 0 ? scores.axis : rank == 2 ? 1 : rank - 1;
    const Term logs = b.Of("LogSoftmax", {y.id()}, IntAttribute("axis", axis));
    const Term all = b.CastTo(Unary("Size", y), b.dtype());
    const Term classes = b.CastTo(b.Of("Gather", {b.ShapeOf(y), b.Constant(Tensor::Scalar<int64_t>(axis))}), b.dtype());
    return AddedLoss{b.SumAll(RelativeEntropy(b, logs, t)).id(), (all / classes).id(), labels};
  }
  if (name == "binary_cross_entropy" && weights > 1) {
    if (const int64_t size = rank == 0 ? 1 : value.type.dims.back(); size != kUnknownDim && size != weights) {
      return unfit(fmt::format("there are {} class_weights, and the last dimension has {} elements", weights, size));
    }
  }
  const Term error = y - t;
  const Term each = name == "binary_cross_entropy"
                        ? (weights == 0 ? BinaryCrossEntropy(y, t)
                                        : BinaryCrossEntropy(y, t, Numbers(b, {weights}, options.class_weights)))
                    : name == "mse"   ? error * error
                    : name == "huber" ? Huber(b, error, options.huber_delta)
                                      : Unary("Abs", error);
  return AddedLoss{b.SumAll(each).id(), b.CastTo(Unary("Size", each), b.dtype()).id(), labels};
}

}  // namespace mge
