// SPDX-License-Identifier: Apache-2.0
#include "core/train/loss.h"

#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/expression.h"
#include "core/train/training.h"
#include "fmt/format.h"

namespace mge {
namespace {

struct Parts {
  Term sum, count;
};

// Counts the labels that are numbers of classes. They are compared with all classes, so that the result consists of
// elementwise operators and sums.
Parts CrossEntropy(const Term& scores, const Term& labels, int64_t rank) {
  ExpressionBuilder& b = scores.builder();
  const Term log_probabilities = b.Of("LogSoftmax", {scores.id()}, IntAttribute("axis", 1));
  const ValueId classes = b.Add("Gather", {b.ShapeOf(scores), b.Constant(Tensor::Scalar<int64_t>(1))});
  ValueId numbers =
      b.Add("Range", {b.Constant(Tensor::Scalar<int64_t>(0)), classes, b.Constant(Tensor::Scalar<int64_t>(1))});
  Ints behind;
  for (int64_t axis = 1; axis + 1 < rank; ++axis) behind.push_back(axis);
  if (!behind.empty()) numbers = b.Add("Unsqueeze", {numbers, b.Integers(behind)});
  const ValueId equal = b.Add("Equal", {b.Add("Unsqueeze", {labels.id(), b.Integers({1})}), numbers});
  const Term chosen = b.Of("Cast", {equal}, CastTo(b.dtype()));
  return {-b.SumAll(chosen * log_probabilities), b.SumAll(chosen)};
}

// Counts all elements.
Parts SumOf(const Term& x) {
  ExpressionBuilder& b = x.builder();
  return {b.SumAll(x), b.Of("Cast", {b.Add("Size", {x.id()})}, CastTo(b.dtype()))};
}

// Computes max(z, 0) - z * t + log(1 + exp(-|z|)), which overflows for no score z.
Term BinaryCrossEntropy(const Term& z, const Term& t) {
  return Unary("Relu", z) - z * t + Unary("Log", 1 + Unary("Exp", -Unary("Abs", z)));
}

// Returns the scores behind an output of probabilities: the input of the operator that computes it. The logarithm of
// probabilities near 0 would be less exact.
ValueId ScoresOf(const Graph& graph, ValueId output, std::string_view op) {
  const Node* node = Producer(graph, output, op);
  if (!node) return output;
  const auto rank = static_cast<int64_t>(graph.value(output).type.dims.size());
  const int64_t axis = node->attrs.Int("axis", -1);
  return op == "Sigmoid" || (axis < 0 ? axis + rank : axis) == 1 ? node->inputs[0] : output;
}

}  // namespace

absl::StatusOr<AddedLoss> AddLoss(Graph& graph, ValueId output, std::string_view name) {
  const Value value = graph.value(output);  // a copy: adding values moves it
  auto unfit = [&](std::string what) {
    return Fail(errors::kBadInput, fmt::format("loss '{}' does not fit output '{}'", name, value.name),
                {.what = std::move(what), .where = "training options"});
  };
  if (value.kind != ValueKind::kTensor || !kFloating.Contains(value.type.dtype) || !value.type.has_rank) {
    return unfit(
        fmt::format("its type is {}; it must be a floating tensor of known rank", TypeText(value.kind, value.type)));
  }
  const auto rank = static_cast<int64_t>(value.type.dims.size());
  TensorType type = value.type;
  if (name == "cross_entropy") {
    if (rank < 2) return unfit(fmt::format("its type is {}; scores have the dimensions [N,C,...]", type.ToString()));
    type.dtype = DType::kI64;
    type.dims.erase(type.dims.begin() + 1);
    if (!type.symbols.empty()) type.symbols.erase(type.symbols.begin() + 1);
  }
  for (const ValueId v : graph.inputs()) {
    if (graph.value(v).name == kLabels) return unfit(fmt::format("the model has an input '{}' already", kLabels));
  }
  const ValueId labels = graph.AddInput(std::string(kLabels), type);
  // Sums and counts do not fit into 16 bits.
  const DType dtype = ElementBytes(value.type.dtype) < 4 ? DType::kF32 : value.type.dtype;
  ExpressionBuilder b(graph, "loss", dtype);
  const ValueId scores = name == "cross_entropy"          ? ScoresOf(graph, output, "Softmax")
                         : name == "binary_cross_entropy" ? ScoresOf(graph, output, "Sigmoid")
                                                          : output;
  auto wide = [&](ValueId v) { return dtype == value.type.dtype ? Term(b, v) : b.CastTo(Term(b, v), dtype); };
  const Term y = wide(scores), t = name == "cross_entropy" ? Term(b, labels) : wide(labels);
  const Parts loss = name == "cross_entropy"          ? CrossEntropy(y, t, rank)
                     : name == "binary_cross_entropy" ? SumOf(BinaryCrossEntropy(y, t))
                     : name == "mse"                  ? SumOf((y - t) * (y - t))
                                                      : SumOf(Unary("Abs", y - t));
  return AddedLoss{loss.sum.id(), loss.count.id(), labels};
}

}  // namespace mge
