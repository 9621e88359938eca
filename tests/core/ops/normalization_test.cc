// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(BatchNormalization, UsesRunningStatistics) {
  const std::vector<std::string> inputs = {"float32[1,2,1]<3, 10>", "float32[2]<1, 2>", "float32[2]<0, 1>",
                                           "float32[2]<1, 6>", "float32[2]<4, 16>"};
  EXPECT_EQ(RunOp("BatchNormalization", inputs, "{epsilon=0.0}"), "float32[1,2,1]<1.0, 3.0>");
  EXPECT_EQ(RunOp("BatchNormalization@7", inputs, "{epsilon=0.0, spatial=1}"), "float32[1,2,1]<1.0, 3.0>");
  EXPECT_THAT(RunOp("BatchNormalization@7", inputs, "{spatial=0}"), HasSubstr("scale has shape [2]"));
  EXPECT_THAT(RunOp("BatchNormalization@14", inputs, "{training_mode=1}", 5), HasSubstr("expected 1 to 3"));
  EXPECT_THAT(RunOp("BatchNormalization", inputs, "", 3), HasSubstr("training_mode = 1"));
}

TEST(BatchNormalization, TrainsOnTheBatch) {
  const std::vector<std::string> inputs = {"float32[2,1]<1, 3>", "float32[1]<1>", "float32[1]<0>", "float32[1]<10>",
                                           "float32[1]<5>"};
  const char* attrs = "{epsilon=0.0, momentum=0.5, training_mode=1}";
  EXPECT_EQ(RunOp("BatchNormalization", inputs, attrs, 3, 0), "float32[2,1]<-1.0, 1.0>");
  EXPECT_EQ(RunOp("BatchNormalization", inputs, attrs, 3, 1), "float32[1]<6.0>");
  EXPECT_EQ(RunOp("BatchNormalization", inputs, attrs, 3, 2), "float32[1]<3.0>");
}

TEST(BatchNormalization, NamesTheParameterThatDoesNotFit) {
  EXPECT_THAT(
      RunOp("BatchNormalization", {"float32[1,2]<3>", "float32[2]<1>", "float32[3]<1>", "float32[2]<1>", "float32[2]<1>"}),
      HasSubstr("B has shape [3], expected [2]"));
}

TEST(InstanceNormalization, NormalizesEachChannel) {
  EXPECT_EQ(RunOp("InstanceNormalization", {"float32[1,2,2]<1, 3, 10, 14>", "float32[2]<1, 2>", "float32[2]<0, 1>"},
                  "{epsilon=0.0}"),
            "float32[1,2,2]<-1.0, 1.0, -1.0, 3.0>");
  EXPECT_EQ(RunOp("InstanceNormalization", {"float32[0,2,2]<>", "float32[2]<1>", "float32[2]<0>"}), "float32[0,2,2]<>");
}

TEST(GroupNormalization, TakesTheParametersOfEachOperatorSet) {
  EXPECT_EQ(RunOp("GroupNormalization@21", {"float32[1,4]<1, 3, 10, 14>", "float32[4]<1, 1, 2, 3>", "float32[4]<0>"},
                  "{num_groups=2, epsilon=0.0}"),
            "float32[1,4]<-1.0, 1.0, -2.0, 3.0>");
  EXPECT_EQ(RunOp("GroupNormalization@18", {"float32[1,4]<1, 3, 10, 14>", "float32[2]<1, 2>", "float32[2]<0>"},
                  "{num_groups=2, epsilon=0.0}"),
            "float32[1,4]<-1.0, 1.0, -2.0, 2.0>");
  EXPECT_THAT(RunOp("GroupNormalization@21", {"float32[1,3]<1>", "float32[3]<1>", "float32[3]<0>"}, "{num_groups=2}"),
              HasSubstr("num_groups = 2"));
  EXPECT_THAT(RunOp("GroupNormalization@21", {"float32[1,3]<1>", "float32[3]<1>", "float32[3]<0>"}, "{num_groups=0}"),
              HasSubstr("num_groups = 0"));
}

TEST(LayerNormalization, GivesAllOutputs) {
  const std::vector<std::string> inputs = {"float32[2,2]<1, 3, 10, 14>", "float32[2]<1, 2>", "float32[2]<0, 1>"};
  EXPECT_EQ(RunOp("LayerNormalization", inputs, "{epsilon=0.0}", 3, 0), "float32[2,2]<-1.0, 3.0, -1.0, 3.0>");
  EXPECT_EQ(RunOp("LayerNormalization", inputs, "{epsilon=0.0}", 3, 1), "float32[2,1]<2.0, 12.0>");
  EXPECT_EQ(RunOp("LayerNormalization", inputs, "{epsilon=0.0}", 3, 2), "float32[2,1]<1.0, 0.5>");
  EXPECT_EQ(RunOp("LayerNormalization", {"float32[2,0]<>", "float32[0]<>"}), "float32[2,0]<>");
  EXPECT_THAT(RunOp("LayerNormalization", {"float32[2,2]<1>", "float32[3]<1>"}), HasSubstr("Scale [3]"));
  EXPECT_THAT(RunOp("LayerNormalization", {"float32[2,2]<1>", "float32[2]<1>"}, "{axis=2}"), HasSubstr("axis 2"));
}

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  EXPECT_EQ(RunOp("RMSNormalization", {"float32[2,2]<1, 7, 0, 0>", "float32[2]<1, 2>"}),
            "float32[2,2]<0.19999996, 2.7999995, 0.0, 0.0>");
  EXPECT_EQ(RunOp("RMSNormalization", {"float32[1,2,2]<1, 1, 1, 1>", "float32[2,1]<2, 3>"}, "{axis=1, epsilon=3.0}"),
            "float32[1,2,2]<1.0, 1.0, 1.5, 1.5>");
  EXPECT_EQ(RunOp("RMSNormalization", {"float32[2,0]<>", "float32[0]<>"}), "float32[2,0]<>");
  EXPECT_THAT(RunOp("RMSNormalization", {"float32[2,2]<1>", "float32[3]<1>"}), HasSubstr("scale [3]"));
  EXPECT_THAT(RunOp("RMSNormalization", {"float32[2,2]<1>", "float32[2]<1>"}, "{axis=2}"), HasSubstr("axis 2"));
}

TEST(RmsNormalization, TakesTheResultsTypeFromTheScale) {
  EXPECT_EQ(RunOp("RMSNormalization", {"float16[1,2]<3, 3>", "float32[2]<1, 2>"}, "{epsilon=0.0}"),
            "float32[1,2]<1.0, 2.0>");
}

TEST(LpNormalization, KeepsZeros) {
  EXPECT_EQ(RunOp("LpNormalization", {"float32[2,2]<3, 4, 0, 0>"}), "float32[2,2]<0.6, 0.8, 0.0, 0.0>");
  EXPECT_EQ(RunOp("LpNormalization", {"float32[2,2]<3, 4, 1, 0>"}, "{p=1, axis=0}"), "float32[2,2]<0.75, 1.0, 0.25, 0.0>");
  EXPECT_THAT(RunOp("LpNormalization", {"float32[2]<1>"}, "{p=3}"), HasSubstr("p is 3"));
}

TEST(Lrn, DampsByNeighbours) {
  EXPECT_EQ(RunOp("LRN", {"float32[1,3,1]<1, 2, 3>"}, "{size=1, alpha=1.0, beta=1.0, bias=0.0}"),
            "float32[1,3,1]<1.0, 0.5, 0.33333334>");
  EXPECT_THAT(RunOp("LRN", {"float32[1,3,1]<1>"}, "{size=0}"), HasSubstr("size is 0"));
}

TEST(MeanVarianceNormalization, HasDefaultAxes) {
  EXPECT_EQ(RunOp("MeanVarianceNormalization", {"float32[1,1,1,2]<1, 3>"}), "float32[1,1,1,2]<-1.0, 1.0>");
  EXPECT_THAT(RunOp("MeanVarianceNormalization", {"float32[2]<1, 3>"}), HasSubstr("axis 2"));
}

TEST(Random, GivesTheSameNumbersForTheSameSeed) {
  const char* op = "RandomNormal";
  std::string a = RunOp(op, {}, "{shape=[4], seed=1.0}"), b = RunOp(op, {}, "{shape=[4], seed=1.0}");
  EXPECT_EQ(a, b);
  EXPECT_NE(a, RunOp(op, {}, "{shape=[4], seed=2.0}"));
  EXPECT_THAT(RunOp("RandomUniform", {}, "{shape=[0]}"), HasSubstr("float32[0]<>"));
  EXPECT_THAT(RunOp("RandomUniform", {}, "{shape=[-1]}"), HasSubstr("negative"));
  EXPECT_THAT(RunOp("RandomUniform", {}, "{shape=[1], dtype=7}"), HasSubstr("dtype"));
  EXPECT_THAT(RunOp("RandomNormalLike", {"int32[2]<0>"}, "{dtype=11}"), HasSubstr("float64[2]<"));
}

TEST(Random, HasTheExpectedMeanAndDeviation) {
  auto results = RunText(
      "n = RandomNormal() {shape=[20000], mean=3.0, scale=2.0, seed=5.0}\n"
      "u = RandomUniform() {shape=[20000], low=-1.0, high=3.0, seed=5.0}\noutput n, u\n");
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  for (int k = 0; k < 2; ++k) {
    double sum = 0, squares = 0;
    for (float v : (*results)[k].tensor.Data<float>()) {
      sum += v;
      squares += static_cast<double>(v) * v;
      EXPECT_TRUE(k == 0 || (v >= -1 && v <= 3));
    }
    double mean = sum / 20000, variance = squares / 20000 - mean * mean;
    EXPECT_NEAR(mean, k == 0 ? 3 : 1, 0.06);
    EXPECT_NEAR(variance, k == 0 ? 4 : 16.0 / 12, 0.15);
  }
}

TEST(Dropout, InferenceIsTheIdentity) {
  EXPECT_EQ(RunOp("Dropout", {"float32[2]<1, 2>"}, "", 2, 0), "float32[2]<1.0, 2.0>");
  EXPECT_EQ(RunOp("Dropout", {"float32[2]<1, 2>"}, "", 2, 1), "bool[2]<true, true>");
  EXPECT_EQ(RunOp("Dropout@7", {"float32[2]<1, 2>"}, "{ratio=0.9}", 2, 1), "float32[2]<1.0, 1.0>");
  EXPECT_THAT(RunOp("Dropout", {"float32[2]<1>", "float32[]<1.5>", "bool[]<true>"}), HasSubstr("ratio is 1.5"));
}

TEST(Dropout, TrainingDropsTheShareAndScalesTheRest) {
  auto results = RunText(
      "const x = float32[10000]<1>\nconst r = float32[]<0.25>\nconst t = bool[]<true>\n"
      "y, m = Dropout(x, r, t) {seed=3}\noutput y, m\n");
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  int kept = 0;
  for (int i = 0; i < 10000; ++i) {
    bool keep = (*results)[1].tensor.Data<bool>()[i];
    kept += keep;
    EXPECT_EQ((*results)[0].tensor.Data<float>()[i], keep ? 1 / 0.75f : 0.0f);
  }
  EXPECT_NEAR(kept, 7500, 200);
}

TEST(Bernoulli, ChecksProbabilities) {
  EXPECT_EQ(RunOp("Bernoulli", {"float32[2]<0, 1>"}, "{dtype=9}"), "bool[2]<false, true>");
  EXPECT_THAT(RunOp("Bernoulli", {"float32[1]<1.5>"}), HasSubstr("probability"));
  EXPECT_THAT(RunOp("Bernoulli", {"float32[1]<nan>"}), HasSubstr("probability"));
}

TEST(Multinomial, DrawsPossibleClasses) {
  EXPECT_EQ(RunOp("Multinomial", {"float32[1,3]<-1000, 0, -1000>"}, "{sample_size=4}"), "int32[1,4]<1, 1, 1, 1>");
  EXPECT_THAT(RunOp("Multinomial", {"float32[1,0]<>"}), HasSubstr("no classes"));
}

}  // namespace
}  // namespace mge
