// SPDX-License-Identifier: Apache-2.0
// Candidates offered for a matrix product. Settings allow and forbid them by their attributes.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(MatMul, IsOfferedInReducedPrecisionOnMatrixUnits) {
  constexpr uint64_t kConverted = MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_REDUCED_PRECISION;
  for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
    auto offers = UnderTest().Offers(OneNode("MatMul", {Random(t, {8, 2000}), Random(t, {2000, 8})}));
    ASSERT_EQ(offers.attributes.size(), offers.candidates.size());
    int converted = 0, exact = 0;
    for (uint64_t attributes : offers.attributes) {
      converted += (attributes & kConverted) == kConverted;
      exact += (attributes & kConverted) == 0;
    }
    EXPECT_EQ(converted, t == DType::kF32 ? 2 : 0);  // with factors rounded to bfloat16 and to TF32
    EXPECT_EQ(exact, 2);                             // in one pass, and in partial sums
  }
}

// Both tiles, both orders of each factor, sizes that are no multiples of a tile, rows that are not aligned to 16 bytes.
TEST(MatMul, Of16BitFloatsRunsOnMatrixUnits) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    for (const auto& [a, b] :
         {std::pair<Shape, Shape>{{70, 48}, {48, 90}}, {{2, 130, 33}, {33, 65}}, {{100, 5, 40}, {100, 40, 8}}}) {
      const int64_t k = a.back();
      OnEveryMachine([&, &a = a, &b = b](Backend& backend) {
        EXPECT_THAT(backend.Check(OneNode("MatMul", {Random(t, a), Random(t, b)}), OfProducts(k)).candidates,
                    ::testing::Contains("gpu.matmul.mma"));
      });
    }
    for (int transposed = 0; transposed < 4; ++transposed) {
      const int64_t left = transposed & 1, right = transposed >> 1;
      const Tensor a = Random(t, left ? Shape{56, 72} : Shape{72, 56}), b = Random(t, right ? Shape{80, 56} : Shape{56, 80});
      Case c = OneNode("Gemm", {a, b, Random(t, {80})}, With({{"transA", left}, {"transB", right}, {"alpha", 0.5f}}));
      EXPECT_THAT(UnderTest().Check(c, OfProducts(56)).candidates, ::testing::Contains("gpu.matmul.mma")) << c.name;
    }
  }
}

// The same of floats rounded to TF32, with the attributes by which settings leave it out.
TEST(MatMul, OfFloatsRunsOnMatrixUnitsInTf32) {
  for (const auto& [a, b] :
       {std::pair<Shape, Shape>{{70, 48}, {48, 90}}, {{2, 130, 33}, {33, 65}}, {{100, 5, 40}, {100, 40, 8}}}) {
    OnEveryMachine([&, &a = a, &b = b](Backend& backend) {
      EXPECT_THAT(backend.Check(OneNode("MatMul", {Random(DType::kF32, a), Random(DType::kF32, b)}), OfProducts(a.back()))
                      .candidates,
                  ::testing::Contains("gpu.matmul.tf32"));
    });
  }
  for (int transposed = 0; transposed < 4; ++transposed) {
    const int64_t left = transposed & 1, right = transposed >> 1;
    const Tensor a = Random(DType::kF32, left ? Shape{56, 72} : Shape{72, 56}),
                 b = Random(DType::kF32, right ? Shape{80, 56} : Shape{56, 80});
    Case c =
        OneNode("Gemm", {a, b, Random(DType::kF32, {80})}, With({{"transA", left}, {"transB", right}, {"alpha", 0.5f}}));
    EXPECT_THAT(UnderTest().Check(c, OfProducts(56)).candidates, ::testing::Contains("gpu.matmul.tf32")) << c.name;
  }
}

// Queries, keys and values: products of one tensor, the second one without a bias.
TEST(MatMul, OfOneTensorWithSeveralMatricesIsOneKernel) {
  Case c;
  const Tensor x = Random(DType::kF32, {2, 35, 20});
  c.inputs = {x};
  const ValueId a = c.graph.AddInput("x", {x.dtype(), true, x.shape(), {}});
  auto add = [&](std::string op, ValueId left, ValueId right) {
    Node node;
    node.op = std::move(op);
    node.version = 24;
    node.name = "n" + std::to_string(c.graph.node_count());
    node.inputs = {left, right};
    node.outputs = {c.graph.AddTemporary("y")};
    const ValueId y = node.outputs[0];
    c.graph.AddNode(std::move(node));
    return y;
  };
  for (uint64_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    ValueId y = add("MatMul", a, c.graph.AddConstant("w" + number, Random(DType::kF32, {20, 70}, -1, 1, i)));
    if (i != 1) y = add("Add", c.graph.AddConstant("b" + number, Random(DType::kF32, {70}, -1, 1, 10 + i)), y);
    c.graph.outputs().push_back(y);
  }
  c.name = "siblings";
  EXPECT_THAT(UnderTest().Claims(c), ::testing::Contains("sibling_products: MatMul Add MatMul MatMul Add"));
  OnEveryMachine([&](Backend& backend) {
    EXPECT_THAT(backend.Check(c, OfProducts(20)).candidates, ::testing::ElementsAre("gpu.matmul.siblings"));
  });
}

}  // namespace
}  // namespace mge::testing
