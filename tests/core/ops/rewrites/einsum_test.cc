// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Model(const std::string& equation, const std::vector<std::string>& shapes,
                  const std::string& dtype = "float32") {
  std::string text, arguments;
  for (size_t i = 0; i < shapes.size(); ++i) {
    bool constant = shapes[i].starts_with("const");
    std::string shape = constant ? shapes[i].substr(5) : shapes[i];
    text += constant ? fmt::format("const r{} = {}{}<1>\n", i, dtype, shape)
                     : fmt::format("input r{} : {}{}\n", i, dtype, shape);
    arguments += fmt::format("{}r{}", i ? ", " : "", i);
  }
  return text + fmt::format("y = Einsum({}) {{equation=\"{}\"}}\noutput y\n", arguments, equation);
}

std::string Rewritten(const std::string& equation, const std::vector<std::string>& shapes, double tolerance = 1e-5) {
  return AfterRewrite("einsum", Model(equation, shapes), tolerance);
}

TEST(EinsumRewrite, OneInputBecomesTransposesAndSums) {
  EXPECT_EQ(Rewritten("ij->ij", {"[2,3]"}), "Identity");
  EXPECT_EQ(Rewritten("ij->ji", {"[2,3]"}), "Transpose");
  EXPECT_EQ(Rewritten("ijk->ki", {"[2,3,4]"}), "ReduceSum Transpose");
  EXPECT_EQ(Rewritten("ij->", {"[2,3]"}), "ReduceSum");
  EXPECT_EQ(Rewritten("...ij->...ji", {"[4,2,2,3]"}), "Transpose");
}

TEST(EinsumRewrite, ProductsOfMatricesUseAsFewTransposesAsPossible) {
  EXPECT_EQ(Rewritten("ij,jk->ik", {"[2,3]", "[3,4]"}), "MatMul");
  EXPECT_EQ(Rewritten("ij,kj->ik", {"[2,3]", "[4,3]"}), "Gemm");
  EXPECT_EQ(Rewritten("ji,kj->ki", {"[3,2]", "[4,3]"}), "MatMul");  // with the operands swapped
  EXPECT_EQ(Rewritten("ji,jk->ik", {"[3,2]", "[3,4]"}), "Gemm");
  EXPECT_EQ(Rewritten("bij,bjk->bik", {"[5,2,3]", "[5,3,4]"}), "MatMul");
  EXPECT_EQ(Rewritten("bhqd,bhkd->bhqk", {"[2,2,3,4]", "[2,2,5,4]"}), "Transpose MatMul");
  EXPECT_EQ(Rewritten("bhqk,bkhd->bqhd", {"[2,2,3,5]", "[2,5,2,4]"}), "Transpose MatMul Transpose");
  EXPECT_EQ(Rewritten("abcdik,abcdkj->abcdij", {"[2,2,2,2,3,5]", "[2,2,2,2,5,4]"}), "Reshape Reshape MatMul Reshape");
  EXPECT_EQ(Rewritten("bsd,dhk->bshk", {"[2,3,4]", "const[4,2,5]"}), "Reshape Reshape MatMul Reshape");
  EXPECT_EQ(Rewritten("i,i->", {"[7]", "[7]"}), "Reshape Reshape MatMul Reshape");
  EXPECT_EQ(Rewritten("ij,j->i", {"[2,3]", "[3]"}), "Reshape MatMul Reshape");
}

TEST(EinsumRewrite, ProductsWithoutASumAreElementwise) {
  EXPECT_EQ(Rewritten("i,j->ij", {"[2]", "[3]"}), "Reshape Mul");
  EXPECT_EQ(Rewritten("ij,i->ij", {"[2,3]", "[2]"}), "Reshape Mul");
  EXPECT_EQ(Rewritten("bij,bij->b", {"[2,3,4]", "[2,3,4]"}), "Mul ReduceSum");
  EXPECT_EQ(Rewritten(",ij->ji", {"[]", "[2,3]"}), "Transpose Mul");
}

TEST(EinsumRewrite, SumsIndicesOfOneInputBeforeTheProduct) {
  EXPECT_EQ(Rewritten("ijk,jl->il", {"[2,3,4]", "[3,5]"}), "ReduceSum MatMul");
  EXPECT_EQ(Rewritten("ij,kl->ik", {"[2,3]", "[4,5]"}), "ReduceSum ReduceSum Reshape Mul");
}

TEST(EinsumRewrite, BroadcastsDimensionsOfSizeOne) {
  EXPECT_EQ(Rewritten("...ij,...jk->...ik", {"[5,2,3]", "[3,4]"}), "Reshape MatMul Reshape");
  EXPECT_EQ(Rewritten("...ij,...jk->...ik", {"[5,2,3]", "[1,3,4]"}), "Reshape Reshape MatMul Reshape");
  EXPECT_EQ(Rewritten("...i,...i->...", {"[4,1,3]", "[5,3]"}), "Reshape Gemm");
  EXPECT_EQ(Rewritten("ij,ij->ij", {"[1,1]", "[1,1]"}), "Reshape Reshape Mul Reshape");
}

TEST(EinsumRewrite, SelectsDiagonals) {
  EXPECT_EQ(Rewritten("ii->i", {"[4,4]"}), "Reshape Slice");
  EXPECT_EQ(Rewritten("ii->", {"[4,4]"}), "Reshape Slice ReduceSum");
  EXPECT_EQ(Rewritten("iji->ij", {"[4,3,4]"}), "Transpose Reshape Slice Transpose");
  EXPECT_EQ(Rewritten("iii->i", {"[3,3,3]"}), "Transpose Reshape Slice Reshape Slice");
  EXPECT_EQ(Rewritten("bii,bi->b", {"[2,3,3]", "[2,3]"}), "Reshape Slice Mul ReduceSum");
}

TEST(EinsumRewrite, OrdersSeveralInputsByWork) {
  EXPECT_EQ(Rewritten("ij,jk,kl->il", {"[2,3]", "[3,4]", "[4,5]"}), "MatMul MatMul");
  EXPECT_EQ(Rewritten("i,j,i->j", {"[2]", "[3]", "[2]"}), "Reshape Reshape MatMul Reshape Mul");
  EXPECT_EQ(Rewritten("ab,bc,ca->", {"[2,3]", "[3,4]", "[4,2]"}), "MatMul Reshape Transpose Reshape MatMul Reshape");
}

TEST(EinsumRewrite, KeepsEmptyInputs) {
  EXPECT_EQ(Rewritten("ij,jk->ik", {"[2,0]", "[0,4]"}), "MatMul");
  EXPECT_EQ(Rewritten("bij,jk->bik", {"[0,2,3]", "[3,4]"}), "Reshape MatMul Reshape");
}

TEST(EinsumRewrite, RoundsSixteenBitsOnceOnly) {
  EXPECT_EQ(AfterRewrite("einsum", Model("ij,jk->ik", {"[2,3]", "[3,4]"}, "float16"), 2e-3), "MatMul");
  EXPECT_EQ(AfterRewrite("einsum", Model("ijk,jl->il", {"[2,300,40]", "[300,5]"}, "float16"), 1e-3),
            "Cast ReduceSum Cast MatMul Cast");
  EXPECT_EQ(AfterRewrite("einsum", Model("ij,jk,kl->il", {"[2,30]", "[30,40]", "[40,5]"}, "bfloat16"), 8e-3),
            "Cast Cast MatMul Cast MatMul Cast");
}

TEST(EinsumRewrite, DoesNotApplyToTypesThatMatMulLacks) {
  EXPECT_EQ(AfterRewrite("einsum",
                         "input a : int8[2,3]\nconst b = int8[3,2]<1>\n"
                         "y = Einsum(a, b) {equation=\"ij,jk->ik\"}\noutput y\n"),
            "Einsum");
}

TEST(EinsumRewrite, DoesNotApplyToUnknownShapes) {
  auto graph = ParseGraphText(
      "input a : float32[N,3]\nconst b = float32[3,4]<1>\n"
      "y = Einsum(a, b) {equation=\"ij,jk->ik\"}\noutput y\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  ASSERT_TRUE(InferTypes(*graph).ok());
  auto rewrite =
      std::find_if(AllRewrites().begin(), AllRewrites().end(), [](const Rewrite* r) { return r->name == "einsum"; });
  EXPECT_FALSE(*(*rewrite)->apply(*graph, 0, UnlimitedHostAllocator()));
}

}  // namespace
}  // namespace mge
