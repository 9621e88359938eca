// SPDX-License-Identifier: Apache-2.0
// conv_batchnorm and conv_affine.
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

struct Form {
  int channels = 3;  // channels of the input
  std::string weights = "[4,3,3,3]";
  std::string attrs = "";
  std::string dtype = "float32";
  bool bias = true;
};

std::string Convolution(const Form& f = {}) {
  return fmt::format("input x : {0}[2,{1},5,5]\nconst rw = {0}{2}<1>\nconst rbias = {0}[4]<1>\nc = Conv(x, rw{3}){4}\n",
                     f.dtype, f.channels, f.weights, f.bias ? ", rbias" : "", f.attrs);
}

std::string Norm(const std::string& dtype = "float32") {
  return "const rs = " + dtype + "[4]<1>\nconst rb = " + dtype + "[4]<1>\nconst rm = " + dtype +
         "[4]<1>\nconst v = " + dtype + "[4]<0.5, 1, 2, 3>\ny = BatchNormalization(c, rs, rb, rm, v) {epsilon=0.001}\n";
}

TEST(ConvBatchnorm, FoldsIntoWeightsAndBias) {
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution() + Norm() + "output y\n"), "Conv");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution({.bias = false}) + Norm() + "output y\n"), "Conv");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution({4, "[4,1,3,3]", " {group=4}"}) + Norm() + "output y\n"), "Conv");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution({4, "[4,2,3,3]", " {group=2}"}) + Norm() + "output y\n"), "Conv");
}

TEST(ConvBatchnorm, FoldsIntoTransposedConvolutions) {
  EXPECT_EQ(AfterRewrite("conv_batchnorm",
                         "input x : float32[2,3,5,5]\nconst rw = float32[3,4,3,3]<1>\nc = ConvTranspose(x, rw)\n" + Norm() +
                             "output y\n"),
            "ConvTranspose");
  EXPECT_EQ(AfterRewrite("conv_batchnorm",
                         "input x : float32[2,6,5,5]\nconst rw = float32[6,2,3,3]<1>\n"
                         "c = ConvTranspose(x, rw) {group=2, strides=[2,2]}\n" +
                             Norm() + "output y\n"),
            "ConvTranspose");
}

TEST(ConvBatchnorm, FoldsInEveryFloatingType) {
  auto model = [](const std::string& dtype) { return Convolution({.dtype = dtype}) + Norm(dtype) + "output y\n"; };
  EXPECT_EQ(AfterRewrite("conv_batchnorm", model("float64"), 1e-12), "Conv");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", model("float16"), 5e-3), "Conv");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", model("bfloat16"), 4e-2), "Conv");
}

TEST(ConvBatchnorm, KeepsResultsThatOtherNodesUse) {
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution() + Norm() + "output y\noutput c\n"), "Conv BatchNormalization");
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution() + Norm() + "z = Relu(c)\noutput y\noutput z\n"),
            "Conv BatchNormalization Relu");
}

TEST(ConvBatchnorm, RefusesTrainingModeAndWeightsThatWouldOverflow) {
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution() +
                                               "const v = float32[4]<1>\n"
                                               "y, m, s = BatchNormalization(c, v, v, v, v) {training_mode=1}\noutput y\n"),
            "Conv BatchNormalization");
  EXPECT_EQ(AfterRewrite("conv_batchnorm",
                         "input x : float16[1,1,3,3]\nconst w = float16[4,1,3,3]<1>\nc = Conv(x, w)\n"
                         "const s = float16[4]<60000>\nconst v = float16[4]<0>\n"
                         "y = BatchNormalization(c, s, v, v, v)\noutput y\n",
                         1e9),
            "Conv BatchNormalization");
}

TEST(ConvBatchnorm, CopiesSharedWeights) {
  EXPECT_EQ(AfterRewrite("conv_batchnorm", Convolution() + Norm() + "z = Conv(x, rw, rbias)\noutput y\noutput z\n"),
            "Conv Conv");
}

TEST(ConvAffine, FoldsScalesAndShiftsOfChannels) {
  for (std::string rest :
       {"const rk = float32[1,4,1,1]<1>\ny = Mul(c, rk)\n", "const rk = float32[4,1,1]<1>\ny = Add(rk, c)\n",
        "const rk = float32[4,1,1]<1>\ny = Sub(c, rk)\n", "const rk = float32[]<1>\ny = Mul(rk, c)\n",
        "const k = float32[1,4,1,1]<1, 2, 3, 4>\ny = Div(c, k)\n"}) {
    EXPECT_EQ(AfterRewrite("conv_affine", Convolution() + rest + "output y\n"), "Conv") << rest;
  }
}

TEST(ConvAffine, RefusesOtherShapesAndOrders) {
  for (std::string rest : {"const rk = float32[3]<1>\ny = Mul(c, rk)\n", "const rk = float32[2,4,1,1]<1>\ny = Mul(c, rk)\n",
                           "const rk = float32[1,1,4,1,1]<1>\ny = Mul(c, rk)\n"}) {
    EXPECT_EQ(AfterRewrite("conv_affine", Convolution() + rest + "output y\n"), "Conv Mul") << rest;
  }
  EXPECT_EQ(AfterRewrite("conv_affine", Convolution() + "const k = float32[]<3>\ny = Sub(k, c)\noutput y\n"), "Conv Sub");
  EXPECT_EQ(AfterRewrite("conv_affine", Convolution() + "const k = float32[]<0>\ny = Div(c, k)\noutput y\n"), "Conv Div");
}

}  // namespace
}  // namespace mge
