// SPDX-License-Identifier: Apache-2.0
// The losses give the numbers of PyTorch's functions of the same name, which are written out here.
#include <gmock/gmock.h>

#include <cmath>

#include "core/base/errors.h"
#include "core/ops/interpreter.h"
#include "core/train/training.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr char kScores[] = "input y : float64[2,3]\nz = Identity(y)\noutput z\n";
constexpr double kRows[2][3] = {{0.2, -1.1, 0.7}, {1.5, 0.3, -0.4}};

absl::StatusOr<double> LossOf(const char* text, const TrainingOptions& options, const Tensor& labels) {
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  onnx::Model model;
  model.graph = std::move(graph);
  MGE_RETURN_IF_ERROR(MakeEvaluation(model, options));
  std::vector<HostValue> inputs(2);
  inputs[0].tensor = Tensor::Of<double>({2, 3}, {&kRows[0][0], 6});
  inputs[1].tensor = labels;
  MGE_ASSIGN_OR_RETURN(const std::vector<HostValue> outputs, Interpret(model.graph, std::move(inputs)));
  return outputs[0].tensor.Data<double>()[0];
}

double Loss(const TrainingOptions& options, const Tensor& labels, const char* text = kScores) {
  const absl::StatusOr<double> loss = LossOf(text, options, labels);
  EXPECT_TRUE(loss.ok()) << FormatError(loss.status());
  return loss.ok() ? *loss : NAN;
}

// The logarithm of the softmax of a row.
double LogProbability(int row, int column) {
  double sum = 0;
  for (double x : kRows[row]) sum += std::exp(x);
  return kRows[row][column] - std::log(sum);
}

Tensor Classes(std::vector<int64_t> numbers) { return Tensor::Vector<int64_t>(numbers); }
Tensor Targets(std::vector<double> numbers) { return Tensor::Of<double>({2, 3}, numbers); }

TEST(Losses, HuberIsLinearBeyondItsDelta) {
  const Tensor zeros = Targets({0, 0, 0, 0, 0, 0});
  auto each = [](double x, double d) { return std::abs(x) <= d ? x * x / 2 : d * (std::abs(x) - d / 2); };
  for (const double delta : {1.0, 0.5}) {
    double sum = 0;
    for (const auto& row : kRows) {
      for (double x : row) sum += each(x, delta);
    }
    EXPECT_NEAR(Loss({.loss = "huber", .huber_delta = delta}, zeros), sum / 6, 1e-12) << delta;
  }
}

TEST(Losses, CrossEntropyWithClassWeightsIsAWeightedMean) {
  const std::vector<double> weights = {0.5, 2, 3};
  const double sum = -0.5 * LogProbability(0, 0) - 3 * LogProbability(1, 2);
  EXPECT_NEAR(Loss({.loss = "cross_entropy", .class_weights = weights}, Classes({0, 2})), sum / 3.5, 1e-12);
  EXPECT_NEAR(Loss({.loss = "cross_entropy", .class_weights = weights}, Classes({-100, 2})), -LogProbability(1, 2), 1e-12);
  double smooth = 0;
  for (int row = 0; row < 2; ++row) {
    for (int c = 0; c < 3; ++c) smooth -= weights[static_cast<size_t>(c)] * LogProbability(row, c) / 3;
  }
  EXPECT_NEAR(Loss({.loss = "cross_entropy", .label_smoothing = 0.1, .class_weights = weights}, Classes({0, 2})),
              (0.9 * sum + 0.1 * smooth) / 3.5, 1e-12);
}

TEST(Losses, BinaryCrossEntropyWeighsTheLabelOne) {
  const Tensor labels = Targets({1, 0, 0.25, 0, 1, 1});
  const double given[] = {1, 0, 0.25, 0, 1, 1};
  for (const std::vector<double>& weights : {std::vector<double>{2.5}, std::vector<double>{0.5, 2, 3}}) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) {
      const double p = 1 / (1 + std::exp(-kRows[i / 3][i % 3])), w = weights.size() == 1 ? weights[0] : weights[i % 3];
      sum -= w * given[i] * std::log(p) + (1 - given[i]) * std::log(1 - p);
    }
    EXPECT_NEAR(Loss({.loss = "binary_cross_entropy", .class_weights = weights}, labels), sum / 6, 1e-12);
  }
}

TEST(Losses, RelativeEntropyIsTheMeanOverTheDistributions) {
  const std::vector<double> t = {0.5, 0.25, 0.25, 1, 0, 0};
  double sum = 0;
  for (int i = 0; i < 6; ++i) {
    if (t[static_cast<size_t>(i)] > 0) sum += t[i] * (std::log(t[i]) - LogProbability(i / 3, i % 3));
  }
  for (const char* last : {"z = Identity(y)", "z = Softmax(y)", "z = LogSoftmax(y)"}) {
    const std::string text = "input y : float64[2,3]\n" + std::string(last) + "\noutput z\n";
    EXPECT_NEAR(Loss({.loss = "kl_divergence"}, Targets(t), text.c_str()), sum / 2, 1e-12) << last;
  }
}

TEST(Losses, RefuseOptionsThatTheyDoNotRead) {
  auto error = [](const TrainingOptions& options) {
    return FormatError(LossOf(kScores, options, Classes({0, 1})).status());
  };
  EXPECT_THAT(error({.loss = "mse", .class_weights = {1}}),
              testing::AllOf(HasSubstr("the loss mse has no class_weights"), HasSubstr("binary_cross_entropy")));
  EXPECT_THAT(error({.loss = "mae", .huber_delta = 2}), HasSubstr("the loss mae has no huber_delta"));
  EXPECT_THAT(error({.loss = "cross_entropy", .class_weights = {1, 2}}),
              HasSubstr("there are 2 class_weights for 3 classes"));
  EXPECT_THAT(error({.loss = "cross_entropy", .class_weights = {1, -2, 1}}), HasSubstr("class_weights[1] = -2"));
  EXPECT_THAT(error({.loss = "huber", .huber_delta = -1}), HasSubstr("huber_delta = -1"));
}

}  // namespace
}  // namespace mge
