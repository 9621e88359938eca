// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Regressor(const std::string& x, const std::string& rest) {
  return "input x : " + x + "\ny = ai.onnx.ml::LinearRegressor@1(x) {coefficients=[0.5,1.0,-1.0,2.0,0.25,-0.5], targets=2" +
         rest + "}\noutput y\n";
}
std::string Classifier(const std::string& rest) {
  return "input x : float32[7,3]\ny, z = ai.onnx.ml::LinearClassifier@1(x) {" + rest + "}\noutput y, z\n";
}

TEST(LinearModelsRewrite, MakesAGemm) {
  EXPECT_EQ(AfterRewrite("linear_models", Regressor("float32[7,3]", "")), "Gemm");
  EXPECT_EQ(AfterRewrite("linear_models", Regressor("float64[7,3]", ", intercepts=[0.5,-2.0]")), "Cast Gemm");
  EXPECT_EQ(AfterRewrite("linear_models", Classifier("coefficients=[0.5,1.0,-1.0,2.0,0.25,-0.5], intercepts=[0.5,0.25], "
                                                     "classlabels_strings=[\"a\",\"b\"], post_transform=\"SOFTMAX\"")),
            "Gemm LinearLabels");
  EXPECT_EQ(AfterRewrite("linear_models", Classifier("coefficients=[0.5,1.0,-1.0], intercepts=[0.5], "
                                                     "classlabels_ints=[3,4], post_transform=\"LOGISTIC\"")),
            "Gemm LinearLabels");
}

TEST(LinearModelsRewrite, LeavesTransformsOfRegressorsAndVectors) {
  EXPECT_EQ(AfterRewrite("linear_models", Regressor("float32[7,3]", ", post_transform=\"LOGISTIC\"")), "LinearRegressor");
  EXPECT_EQ(AfterRewrite("linear_models", Regressor("float32[3]", "")), "LinearRegressor");
}

}  // namespace
}  // namespace mge
