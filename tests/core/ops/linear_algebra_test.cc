// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/ops/interpreter.h"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

constexpr const char* kA = "float32[2,3]<1, 2, 3, 4, 5, 6>";
constexpr const char* kB = "float32[3,2]<1, 0, 0, 1, 1, 1>";

TEST(MatMul, FollowsNumpy) {
  EXPECT_EQ(RunOp("MatMul", {kA, kB}), "float32[2,2]<4.0, 5.0, 10.0, 11.0>");
  EXPECT_EQ(RunOp("MatMul", {"float32[3]<1, 2, 3>", kB}), "float32[2]<4.0, 5.0>");
  EXPECT_EQ(RunOp("MatMul", {kA, "float32[3]<1>"}), "float32[2]<6.0, 15.0>");
  EXPECT_EQ(RunOp("MatMul", {"float32[3]<1, 2, 3>", "float32[3]<1>"}), "float32[]<6.0>");
  EXPECT_EQ(RunOp("MatMul", {"int32[2,1,1,2]<1, 2, 3, 4>", "int32[2,2,1]<1, 1, 2, 2>"}), "int32[2,2,1,1]<3, 6, 7, 14>");
  EXPECT_EQ(RunOp("MatMul", {"float16[1,2]<1, 2>", "float16[2,1]<3, 4>"}), "float16[1,1]<11.0>");
}

TEST(MatMul, HandlesEmptyOperands) {
  EXPECT_EQ(RunOp("MatMul", {"float32[2,0]<>", "float32[0,2]<>"}), "float32[2,2]<0.0, 0.0, 0.0, 0.0>");
  EXPECT_EQ(RunOp("MatMul", {"float32[0,2]<>", "float32[2,3]<1>"}), "float32[0,3]<>");
  EXPECT_EQ(RunOp("MatMul", {"float32[0,2,2]<>", "float32[2,3]<1>"}), "float32[0,2,3]<>");
}

TEST(MatMul, NamesTheShapesThatDoNotFit) {
  EXPECT_THAT(RunOp("MatMul", {kA, kA}), HasSubstr("[2,3] and [2,3] cannot be multiplied"));
  EXPECT_THAT(RunOp("MatMul", {"float32[]<1>", kA}), HasSubstr("scalar"));
  EXPECT_THAT(RunOp("MatMul", {"float32[2,1,1]<1>", "float32[3,1,1]<1>"}), HasSubstr("cannot be broadcast"));
}

TEST(Products, CheckForCancellationInEachRow) {
  constexpr int64_t kRows = 100;
  for (const char* op : {"MatMul", "Gemm", "MatMulInteger"}) {
    const std::string type = std::string_view(op) == "MatMulInteger" ? "uint8" : "float32";
    auto graph =
        ParseGraphText("input a : " + type + "[100,4]\ninput b : " + type + "[4,4]\ny = " + op + "(a, b)\noutput y\n");
    ASSERT_TRUE(graph.ok() && BindNode(*graph, 0).ok());
    int64_t asked = 0;
    std::vector<HostValue> inputs(2);
    for (size_t i : {0, 1}) {
      const TensorType& t = graph->value(graph->inputs()[i]).type;
      inputs[i].tensor = *Tensor::Create(t.dtype, t.dims);
      std::memset(inputs[i].tensor.mutable_data(), 0, inputs[i].tensor.bytes());
    }
    StopCheck stop = [&] { return ++asked == kRows ? Fail(errors::kCancelled, "enough") : absl::OkStatus(); };
    auto results = Evaluate(graph->node(0), inputs, UnlimitedHostAllocator(), stop);
    EXPECT_EQ(ErrorId(results.status()), errors::kCancelled.id) << op;
    EXPECT_EQ(asked, kRows) << op;
  }
}

TEST(MatMulInteger, SubtractsZeroPoints) {
  EXPECT_EQ(RunOp("MatMulInteger", {"uint8[1,2]<11, 7>", "uint8[2,1]<1, 4>", "uint8[]<12>", "uint8[]<0>"}),
            "int32[1,1]<-21>");
  EXPECT_EQ(RunOp("MatMulInteger", {"int8[2,1]<1, 2>", "int8[1,2]<3, 4>", "int8[2]<1, 1>", "int8[2]<0, 1>"}),
            "int32[2,2]<0, 0, 3, 3>");
  EXPECT_THAT(RunOp("MatMulInteger", {"int8[2,1]<1>", "int8[1,2]<3>", "int8[3]<1>"}), HasSubstr("zero point"));
}

TEST(Gemm, AppliesAllAttributes) {
  EXPECT_EQ(RunOp("Gemm", {kA, kB, "float32[2]<1, 2>"}, "{alpha=2.0, beta=0.5}"), "float32[2,2]<8.5, 11.0, 20.5, 23.0>");
  EXPECT_EQ(RunOp("Gemm", {kB, kA}, "{transA=1, transB=1}"), "float32[2,2]<4.0, 10.0, 5.0, 11.0>");
  EXPECT_EQ(RunOp("Gemm", {"int32[1,1]<3>", "int32[1,1]<4>", "int32[]<5>"}), "int32[1,1]<17>");
  EXPECT_EQ(RunOp("Gemm@6", {kA, kB, "float32[1]<1>"}, "{broadcast=1}"), "float32[2,2]<5.0, 6.0, 11.0, 12.0>");
  EXPECT_EQ(RunOp("Gemm", {"float32[0,3]<>", kB}), "float32[0,2]<>");
  EXPECT_EQ(RunOp("Gemm", {"float32[1,0]<>", "float32[0,1]<>", "float32[]<3>"}), "float32[1,1]<3.0>");
  EXPECT_THAT(RunOp("Gemm", {kA, kA}), HasSubstr("cannot be multiplied"));
  EXPECT_THAT(RunOp("Gemm", {kA, kB, "float32[3]<1>"}), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(RunOp("Gemm", {"float32[3]<1>", kB}), HasSubstr("rank"));
}

// With queries of 0, all keys that a query sees have one weight, so the results are means of the values 1, 3 and 8.
TEST(Attention, WeighsTheValuesOfTheKeysThatAQuerySees) {
  const std::vector<std::string> same = {"float32[1,1,3,1]<0>", "float32[1,1,3,1]<1>", "float32[1,1,3,1]<1, 3, 8>"};
  auto run = [&](std::vector<std::string> more, const std::string& attrs) {
    more.insert(more.begin(), same.begin(), same.end());
    return RunOp("Attention", more, attrs);
  };
  EXPECT_EQ(run({}, ""), "float32[1,1,3,1]<4.0, 4.0, 4.0>");
  EXPECT_EQ(run({}, "{is_causal=1}"), "float32[1,1,3,1]<1.0, 2.0, 4.0>");
  EXPECT_EQ(run({}, "{left_window_size=0, right_window_size=1}"), "float32[1,1,3,1]<2.0, 5.5, 8.0>");
  EXPECT_EQ(run({"bool[3,3]<true, false, true, false, true, false, false, false, false>"}, ""),
            "float32[1,1,3,1]<4.5, 3.0, 0.0>");
  EXPECT_EQ(run({"bool[3,1]<true>"}, ""), "float32[1,1,3,1]<1.0, 1.0, 1.0>");  // keys behind the mask are not seen
}

TEST(Attention, ScalesAndCapsTheScores) {
  // Scores 2 * ln 3 * 0.5: the weights are 1/4 and 3/4.
  const std::vector<std::string> inputs = {"float32[1,1,1,1]<2>", "float32[1,1,2,1]<0, 1.0986123>",
                                           "float32[1,1,2,1]<4, 8>"};
  EXPECT_EQ(RunOp("Attention", inputs, "{scale=0.5}"), "float32[1,1,1,1]<7.0>");
  EXPECT_EQ(RunOp("Attention", inputs, "{softcap=0.000001}"), "float32[1,1,1,1]<6.000001>");
}

TEST(Det, GivesTheDeterminantOfSquareMatrices) {
  EXPECT_EQ(RunOp("Det", {"float32[2,2]<1, 2, 3, 4>"}), "float32[]<-2.0>");
  EXPECT_EQ(RunOp("Det", {"float32[2,2,2]<0, 1, 1, 0, 1, 2, 2, 4>"}), "float32[2]<-1.0, 0.0>");
  EXPECT_EQ(RunOp("Det", {"float32[0,0]<>"}), "float32[]<1.0>");
  EXPECT_THAT(RunOp("Det", {kA}), HasSubstr("does not hold square matrices"));
}

TEST(Einsum, ComputesKnownEquations) {
  auto run = [](const char* equation, std::vector<std::string> inputs) {
    return RunOp("Einsum", inputs, fmt::format("{{equation=\"{}\"}}", equation));
  };
  EXPECT_EQ(run("ij,jk->ik", {kA, kB}), "float32[2,2]<4.0, 5.0, 10.0, 11.0>");
  EXPECT_EQ(run("ij->ji", {kA}), "float32[3,2]<1.0, 4.0, 2.0, 5.0, 3.0, 6.0>");
  EXPECT_EQ(run("ij->", {kA}), "float32[]<21.0>");
  EXPECT_EQ(run("ji", {kA}), "float32[3,2]<1.0, 4.0, 2.0, 5.0, 3.0, 6.0>");
  EXPECT_EQ(run("ii->i", {"int32[2,2]<1, 2, 3, 4>"}), "int32[2]<1, 4>");
  EXPECT_EQ(run("ii", {"int32[2,2]<1, 2, 3, 4>"}), "int32[]<5>");
  EXPECT_EQ(run("...ij,...jk->...ik", {"int32[2,1,2]<1, 2, 3, 4>", "int32[2,1]<1, 1>"}), "int32[2,1,1]<3, 7>");
  EXPECT_EQ(run("i,j,i->j", {"int32[2]<1, 2>", "int32[2]<3, 4>", "int32[2]<5, 6>"}), "int32[2]<51, 68>");
  EXPECT_EQ(run("ij,jk->ik", {"float32[2,0]<>", "float32[0,1]<>"}), "float32[2,1]<0.0, 0.0>");
  EXPECT_EQ(run(" i , i -> ", {"float32[2]<1, 2>", "float32[2]<3, 4>"}), "float32[]<11.0>");
}

TEST(Einsum, RefusesBadEquations) {
  auto run = [](const char* equation, std::vector<std::string> inputs) {
    return RunOp("Einsum", inputs, fmt::format("{{equation=\"{}\"}}", equation));
  };
  EXPECT_THAT(run("ij,jk->ik", {kA}), HasSubstr("2 terms for 1 inputs"));
  EXPECT_THAT(run("ijk->i", {kA}), HasSubstr("rank 2"));
  EXPECT_THAT(run("ij->iz", {kA}), HasSubstr("no input has"));
  EXPECT_THAT(run("ij->ii", {kA}), HasSubstr("twice"));
  EXPECT_THAT(run("i1->i", {kA}), HasSubstr("unexpected '1'"));
  EXPECT_THAT(run("ij,jk->ik", {kA, kA}), HasSubstr("size 3 and size 2"));
  EXPECT_THAT(run("", {kA}), HasSubstr("rank 2"));
  EXPECT_THAT(run("ii->i", {kA}), HasSubstr("size 2 and size 3"));
  EXPECT_THAT(run("....->i", {kA}), HasSubstr("unexpected '.'"));
}

}  // namespace
}  // namespace mge
