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

// Returns the sum, over the labels that count, of the mean cross-entropy with every class.
Term SumOverClasses(ExpressionBuilder& b, const Term& scores, ValueId labels, int64_t axis) {
  const Term logs = b.Of("LogSoftmax", {scores.id()}, IntAttribute("axis", axis));
  Attributes drop = IntAttribute("keepdims", 0);
  const Term each = -b.Of("ReduceMean", {logs.id(), b.Integers({axis})}, std::move(drop));
  const ValueId classes = b.Add("Gather", {b.ShapeOf(scores), b.Integers({axis})});
  const ValueId zero = b.Integers({0});
  const ValueId counts = b.Add("And", {b.Add("GreaterOrEqual", {labels, zero}), b.Add("Less", {labels, classes})});
  return b.SumAll(b.Where(counts, each, b.Number(0)));
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
  const auto wide = [&](ValueId v) { return narrow ? b.CastTo(Term(b, v), DType::kF32) : Term(b, v); };
  const Term y = wide(scores.value), t = classes ? Term(b, labels) : wide(labels);
  if (classes) {
    if (options.label_smoothing > 0 && scores.axis == 0) {
      return unfit("label_smoothing needs to know which dimension has the classes; token_cross_entropy takes the last one");
    }
    const std::vector<ValueId> parts = b.AddOurs("CrossEntropy", {y.id(), t.id()}, 2, IntAttribute("axis", scores.axis));
    if (options.label_smoothing == 0) return AddedLoss{parts[0], parts[1], labels};
    const Term sum = Term(b, parts[0]) * (1 - options.label_smoothing) +
                     SumOverClasses(b, y, labels, scores.axis) * options.label_smoothing;
    return AddedLoss{sum.id(), parts[1], labels};
  }
  const Term each = name == "binary_cross_entropy" ? BinaryCrossEntropy(y, t)
                    : name == "mse"                ? (y - t) * (y - t)
                                                   : Unary("Abs", y - t);
  return AddedLoss{b.SumAll(each).id(), b.CastTo(Unary("Size", each), b.dtype()).id(), labels};
}

}  // namespace mge
