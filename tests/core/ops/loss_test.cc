// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss, Adagrad, Adam, Momentum.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(NegativeLogLikelihoodLoss, ReducesThreeWays) {
  const char* scores = "float64[2,2]<-1, -2, -3, -4>";
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, 1>"}), "float64[]<2.5>");
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int32[2]<0, 1>"}, "{reduction=\"sum\"}"), "float64[]<5.0>");
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, 1>"}, "{reduction=\"none\"}"), "float64[2]<1.0, 4.0>");
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, 1>", "float64[2]<1, 3>"}), "float64[]<3.25>");
}

TEST(NegativeLogLikelihoodLoss, LeavesOutIgnoredLabels) {
  const char* scores = "float32[2,2]<-1, -2, -3, -4>";
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, -9>"}, "{ignore_index=-9}"), "float32[]<1.0>");
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, 1>"}, "{ignore_index=1, reduction=\"none\"}"),
            "float32[2]<1.0, 0.0>");
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<1, 1>"}, "{ignore_index=1}"), "float32[]<nan>");
}

TEST(NegativeLogLikelihoodLoss, RefusesBadLabelsAndShapes) {
  const char* scores = "float32[2,2]<-1>";
  EXPECT_THAT(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0, 2>"}),
              HasSubstr("label 2 at place 1 is outside of 0..1"));
  EXPECT_THAT(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<-1, 0>"}), HasSubstr("label -1"));
  EXPECT_THAT(Both("NegativeLogLikelihoodLoss", {scores, "int64[3]<0>"}), HasSubstr("the tensor of labels"));
  EXPECT_THAT(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0>", "float32[3]<1>"}),
              HasSubstr("the tensor of weights"));
  EXPECT_THAT(Both("NegativeLogLikelihoodLoss", {scores, "int64[2]<0>"}, "{reduction=\"max\"}"),
              HasSubstr("not one of mean"));
  EXPECT_EQ(Both("NegativeLogLikelihoodLoss", {"float32[0,2]<>", "int64[0]<>"}, "{reduction=\"none\"}"), "float32[0]<>");
}

TEST(SoftmaxCrossEntropyLoss, IsStableForLargeScores) {
  EXPECT_EQ(Both("SoftmaxCrossEntropyLoss", {"float32[1,2]<1000, 0>", "int64[1]<1>"}), "float32[]<1000.0>");
  EXPECT_EQ(RunOp("SoftmaxCrossEntropyLoss", {"float64[1,2]<0, 0>", "int64[1]<1>"}, "", 2, 1),
            "float64[1,2]<-0.6931471805599453, -0.6931471805599453>");
}

std::string Step(std::string_view op, std::string_view rest, const std::vector<std::string>& tensors, int outputs,
                 int wanted) {
  std::vector<std::string> inputs = {"float64[]<0.5>", "int64[]<0>"};
  inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  return RunOp(fmt::format("ai.onnx.preview.training::{}@1", op), inputs, rest, outputs, wanted);
}

TEST(Optimizers, MakeOneStep) {
  const char* rest = "{alpha=0.5, beta=1.0, norm_coefficient=0.0, mode=\"standard\"}";
  const std::vector<std::string> tensors = {"float64[1]<1>", "float64[1]<2>", "float64[1]<4>"};
  EXPECT_EQ(Step("Momentum", rest, tensors, 2, 1), "float64[1]<4.0>");   // v = 0.5 * 4 + 2
  EXPECT_EQ(Step("Momentum", rest, tensors, 2, 0), "float64[1]<-1.0>");  // x = 1 - 0.5 * 4
  EXPECT_EQ(Step("Adagrad", "{epsilon=0.0}", {"float64[1]<1>", "float64[1]<3>", "float64[1]<16>"}, 2, 0), "float64[1]<0.7>");
  EXPECT_EQ(Step("Adam", "{alpha=0.5, beta=0.75, epsilon=0.0}",
                 {"float64[1]<1>", "float64[1]<4>", "float64[1]<4>", "float64[1]<16>"}, 3, 0),
            "float64[1]<0.5>");
}

TEST(Optimizers, RefuseIncompleteGroups) {
  EXPECT_THAT(Step("Adagrad", "", {"float64[1]<1>", "float64[1]<3>"}, 2, 0), HasSubstr("3 are required for each"));
  EXPECT_THAT(Step("Adagrad", "", {"float64[1]<1>", "float64[1]<3>", "float64[1]<3>"}, 1, 0), HasSubstr("require 2"));
  EXPECT_THAT(Step("Adagrad", "", {"float64[1]<1>", "float64[2]<3>", "float64[1]<3>"}, 2, 0),
              HasSubstr("input 3 has shape [2]"));
  EXPECT_THAT(Step("Adagrad", "", {"float64[1]<1>", "float32[1]<3>", "float64[1]<3>"}, 2, 0), HasSubstr("must be the same"));
}

}  // namespace
}  // namespace mge
