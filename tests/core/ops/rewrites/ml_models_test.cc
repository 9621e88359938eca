// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Extractor(const std::string& x, const std::string& indices) {
  return "input x : " + x + "\nconst i = int64" + indices + "\ny = ai.onnx.ml::ArrayFeatureExtractor@1(x, i)\noutput y\n";
}

TEST(FeatureExtractorRewrite, MakesAGatherOfConstantIndices) {
  EXPECT_EQ(AfterRewrite("feature_extractor", Extractor("float32[7,5]", "[3]<4, 0, 4>"), 0), "Gather");
  EXPECT_EQ(AfterRewrite("feature_extractor", Extractor("float32[2,3,5]", "[1,2]<4, 1>"), 0), "Gather");
}

TEST(FeatureExtractorRewrite, LeavesVectorsAndWrongIndices) {
  EXPECT_EQ(AfterRewrite("feature_extractor", Extractor("float32[5]", "[1]<4>"), 0), "ArrayFeatureExtractor");
  EXPECT_EQ(RewrittenOps("feature_extractor", Extractor("float32[7,5]", "[1]<-1>")), "ArrayFeatureExtractor");
  EXPECT_EQ(RewrittenOps("feature_extractor", Extractor("float32[7,5]", "[1]<5>")), "ArrayFeatureExtractor");
}

std::string Svm(const std::string& rest, const std::string& x = "float32[7,2]") {
  return "input x : " + x + "\ny = ai.onnx.ml::SVMRegressor@1(x) {rho=[0.25], " + rest + "}\noutput y\n";
}
std::string WithVectors(const std::string& kernel, const std::string& more = "") {
  return Svm("kernel_type=\"" + kernel +
             "\", kernel_params=[0.5,0.75,3.0], n_supports=3, coefficients=[1.5,-1.0,0.5], "
             "support_vectors=[0.5,1.5,-1.0,2.0,0.75,-0.5]" +
             more);
}

TEST(SvmRegressorRewrite, MakesProducts) {
  EXPECT_EQ(AfterRewrite("svm_regressor", Svm("coefficients=[1.5,-1.0]")), "Gemm");
  EXPECT_EQ(AfterRewrite("svm_regressor", Svm("coefficients=[1.5,-1.0]", "float64[7,2]")), "Cast Gemm");
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("LINEAR")), "MatMul Gemm");
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("POLY")), "MatMul Mul Add Pow Gemm");
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("SIGMOID")), "MatMul Mul Add Tanh Gemm");
}

TEST(SvmRegressorRewrite, LeavesDistancesSignsAndTransforms) {
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("RBF")), "SVMRegressor");
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("POLY", ", one_class=1")), "SVMRegressor");
  EXPECT_EQ(AfterRewrite("svm_regressor", WithVectors("POLY", ", post_transform=\"LOGISTIC\"")), "SVMRegressor");
}

}  // namespace
}  // namespace mge
