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
    EXPECT_EQ(converted,
              t == DType::kF32 ? 3 : 0);  // with factors rounded to bfloat16, and to TF32 in one pass and in parts
    EXPECT_EQ(exact, 2);                  // in one pass, and in partial sums
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

// A long product with few tiles is split along k. The parts end at steps of the tile, the last one earlier.
TEST(MatMul, WithFewTilesIsSplitOnMatrixUnits) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string id = t == DType::kF32 ? "gpu.matmul.tf32_split_k" : "gpu.matmul.mma_split_k";
    OnEveryMachine([&](Backend& backend) {
      const Case c = OneNode("MatMul", {Random(t, {70, 1000}), Random(t, {1000, 9})});
      EXPECT_THAT(backend.Check(c, OfProducts(1000)).candidates, ::testing::Contains(id));
    });
    Case gemm = OneNode("Gemm", {Random(t, {530, 6}), Random(t, {40, 530}), Random(t, {40})},
                        With({{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}}));
    Then(gemm, "Relu");
    EXPECT_THAT(UnderTest().Check(gemm, OfProducts(530)).candidates, ::testing::Contains(id));
    const Case batch = OneNode("MatMul", {Random(t, {2, 6, 700}), Random(t, {2, 700, 40})});
    EXPECT_THAT(UnderTest().Check(batch, OfProducts(700)).candidates, ::testing::Contains(id));
  }
}

// Returns products of one tensor, such as queries, keys and values. The second one has no bias.
Case Siblings(DType t, const Shape& x_shape, const Shape& w_shape) {
  Case c;
  const Tensor x = Random(t, x_shape);
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
    ValueId y = add("MatMul", a, c.graph.AddConstant("w" + number, Random(t, w_shape, -1, 1, i)));
    if (i != 1) y = add("Add", c.graph.AddConstant("b" + number, Random(t, {w_shape[1]}, -1, 1, 10 + i)), y);
    c.graph.outputs().push_back(y);
  }
  c.name = "siblings of " + std::string(DTypeName(t));
  return c;
}

TEST(MatMul, OfOneTensorWithSeveralMatricesIsOneKernel) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Case c = Siblings(t, {2, 35, 20}, {20, 70});
    EXPECT_THAT(UnderTest().Claims(c), ::testing::Contains("sibling_products: MatMul Add MatMul MatMul Add"));
    const std::string units = t == DType::kF32 ? "gpu.matmul.siblings.tf32" : "gpu.matmul.siblings.mma";
    OnEveryMachine([&](Backend& backend) {
      EXPECT_THAT(backend.Check(c, OfProducts(20)).candidates,
                  ::testing::UnorderedElementsAre("gpu.matmul.siblings", units));
    });
    // Enough for large tiles.
    EXPECT_THAT(UnderTest().Check(Siblings(t, {700, 24}, {24, 840}), OfProducts(24)).candidates, ::testing::Contains(units));
  }
  EXPECT_THAT(UnderTest().Claims(Siblings(DType::kF64, {2, 35, 20}, {20, 70})),
              ::testing::Not(::testing::Contains(::testing::StartsWith("sibling_products"))));
}

}  // namespace
}  // namespace mge::testing
