// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 16-bit floats, with the nodes that follow them, as one kernel.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// The nodes before the last one are rounded by the reference, but not by the kernel.
Tolerance Rounded(DType t) { return ToleranceOf(t, 16); }

TEST(Epilogue, Of16BitConvolutionsIsOneKernel) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    for (const char* op : {"Relu", "Clip", "Sigmoid", "HardSwish", "LeakyRelu"}) {
      Case c = OneNode("Conv", {Random(t, {2, 8, 6, 7}), Random(t, {16, 8, 3, 3}), Random(t, {16})},
                       With({{"pads", Ints{1, 1, 1, 1}}}));
      Then(c, "Add", {Random(t, {2, 16, 6, 7}, -1, 1, 5)}, {}, false);
      if (std::string_view(op) == "Clip") {
        Then(c, op, {Fill(t, {}, {0}), Fill(t, {}, {6})});
      } else {
        Then(c, op);
      }
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Claims(c), Contains(HasSubstr("conv_epilogue"))) << op;
        EXPECT_THAT(backend.Check(c, Rounded).candidates, Contains("gpu.conv.mma")) << op;
      });
    }
  }
}

TEST(Epilogue, Of16BitProductsIsOneKernel) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    for (const char* op : {"Relu", "Gelu", "Tanh"}) {
      Case c = OneNode("MatMul", {Random(t, {40, 32}), Random(t, {32, 48})});
      Then(c, "Add", {Random(t, {48}, -1, 1, 5)});
      Then(c, op);
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Claims(c), Contains(HasSubstr("gemm_epilogue"))) << op;
        EXPECT_THAT(backend.Check(c, Rounded).candidates, Contains("gpu.matmul.mma")) << op;
      });
    }
  }
}

// A gradient of Gelu reads its argument, so that the product writes both. Few tiles and many steps are split along k.
TEST(Epilogue, MayAlsoWriteTheArgumentOfGelu) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const char* form : {"none", "tanh"}) {
      Case c = OneNode("MatMul", {Random(t, {2, 20, 600}), Random(t, {600, 48})});
      Then(c, "Add", {Random(t, {48}, -1, 1, 5)});
      Then(c, "Add", {Random(t, {2, 20, 48}, -1, 1, 6)}, {}, false);
      const ValueId before = c.graph.outputs()[0];
      Then(c, "Gelu", {}, With({{"approximate", std::string(form)}}));
      c.graph.outputs().push_back(before);
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Claims(c), Contains("gemm_epilogue: MatMul Add Add Gelu"));
        const bool floats = t == DType::kF32;
        EXPECT_THAT(backend.Check(c, OfProducts(600)).candidates,
                    IsSupersetOf({"gpu.matmul.tiles", "gpu.matmul.split_k", floats ? "gpu.matmul.tf32" : "gpu.matmul.mma",
                                  floats ? "gpu.matmul.tf32_split_k" : "gpu.matmul.mma_split_k"}));
      });
    }
  }
}

// The argument is read by a node that would be in a chain with the activation.
TEST(Epilogue, DoesNotWriteTheArgumentOfOtherActivations) {
  Case c = OneNode("MatMul", {Random(DType::kF32, {8, 8}), Random(DType::kF32, {8, 8})});
  const ValueId before = c.graph.outputs()[0];
  Then(c, "Sigmoid");
  c.graph.outputs().push_back(before);
  EXPECT_THAT(UnderTest().Claims(c), Not(Contains(HasSubstr("gemm_epilogue"))));
}

TEST(Epilogue, IsNotOfferedForFloat64) {
  Case c = OneNode("MatMul", {Random(DType::kF64, {8, 8}), Random(DType::kF64, {8, 8})});
  Then(c, "Relu");
  EXPECT_THAT(UnderTest().Claims(c), Not(Contains(HasSubstr("gemm_epilogue"))));
}

}  // namespace
}  // namespace mge::testing
