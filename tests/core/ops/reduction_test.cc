// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMatrix = "float32[2,3]<1, 2, 3, 4, 5, 6>";

TEST(Reduce, TakesAxesAsInputAndAsAttribute) {
  EXPECT_EQ(RunOp("ReduceSum", {kMatrix}), "float32[1,1]<21.0>");
  EXPECT_EQ(RunOp("ReduceSum", {kMatrix, "int64[1]<1>"}, "{keepdims=0}"), "float32[2]<6.0, 15.0>");
  EXPECT_EQ(RunOp("ReduceSum", {kMatrix, "int64[1]<-2>"}), "float32[1,3]<5.0, 7.0, 9.0>");
  EXPECT_EQ(RunOp("ReduceSum@11", {kMatrix}, "{axes=[1], keepdims=0}"), "float32[2]<6.0, 15.0>");
  EXPECT_EQ(RunOp("ReduceMean@13", {kMatrix}, "{axes=[0, 1]}"), "float32[1,1]<3.5>");
  EXPECT_EQ(RunOp("ReduceMax", {"float32[]<3>"}), "float32[]<3.0>");
}

TEST(Reduce, WithNoopGivesTheInput) {
  EXPECT_EQ(RunOp("ReduceSum", {"float32[2]<1, 2>", "int64[0]<>"}, "{noop_with_empty_axes=1}"), "float32[2]<1.0, 2.0>");
  EXPECT_EQ(RunOp("ReduceSum", {"float32[2]<1, 2>", "int64[0]<>"}), "float32[1]<3.0>");
}

TEST(Reduce, WithNoopStillAppliesTheFunctionOfSingleElements) {
  auto run = [](const char* op) { return RunOp(op, {"float32[2]<-2, 1>"}, "{noop_with_empty_axes=1}"); };
  EXPECT_EQ(run("ReduceL1"), "float32[2]<2.0, 1.0>");
  EXPECT_EQ(run("ReduceL2"), "float32[2]<2.0, 1.0>");
  EXPECT_EQ(run("ReduceSumSquare"), "float32[2]<4.0, 1.0>");
  EXPECT_EQ(run("ReduceLogSum"), "float32[2]<nan, 0.0>");
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"}) {
    EXPECT_EQ(run(op), "float32[2]<-2.0, 1.0>") << op;
  }
}

TEST(Reduce, ComputesEveryKind) {
  auto run = [](const char* op) { return RunOp(op, {"float32[3]<1, -2, 4>"}, "{keepdims=0}"); };
  EXPECT_EQ(run("ReduceMax"), "float32[]<4.0>");
  EXPECT_EQ(run("ReduceMin"), "float32[]<-2.0>");
  EXPECT_EQ(run("ReduceProd"), "float32[]<-8.0>");
  EXPECT_EQ(run("ReduceL1"), "float32[]<7.0>");
  EXPECT_EQ(run("ReduceSumSquare"), "float32[]<21.0>");
  EXPECT_EQ(run("ReduceLogSum"), "float32[]<1.0986123>");
  EXPECT_EQ(RunOp("ReduceL2", {"float32[2]<3, 4>"}), "float32[1]<5.0>");
  EXPECT_EQ(RunOp("ReduceLogSumExp", {"float32[2]<1000, 1000>"}), "float32[1]<1000.6932>");
  EXPECT_EQ(RunOp("ReduceMean", {"int32[3]<1, 2, 4>"}), "int32[1]<2>");
  EXPECT_EQ(RunOp("ReduceMax", {"bool[2]<true, false>"}), "bool[1]<true>");
  EXPECT_EQ(RunOp("ReduceMin", {"uint64[2]<18446744073709551615, 9223372036854775808>"}), "uint64[1]<9223372036854775808>");
}

TEST(Reduce, PropagatesNan) {
  EXPECT_EQ(RunOp("ReduceMax", {"float32[3]<1, nan, 2>"}), "float32[1]<nan>");
  EXPECT_EQ(RunOp("ReduceMin", {"float32[3]<1, nan, 2>"}), "float32[1]<nan>");
}

TEST(Reduce, HandlesEmptyInputs) {
  EXPECT_EQ(RunOp("ReduceSum", {"float32[2,0]<>", "int64[1]<1>"}), "float32[2,1]<0.0, 0.0>");
  EXPECT_EQ(RunOp("ReduceProd", {"float32[0]<>"}), "float32[1]<1.0>");
  EXPECT_EQ(RunOp("ReduceMax", {"float32[0]<>"}), "float32[1]<-inf>");
  EXPECT_EQ(RunOp("ReduceMin", {"int32[0]<>"}), "int32[1]<2147483647>");
  EXPECT_EQ(RunOp("ReduceMean", {"float32[0]<>"}), "float32[1]<nan>");
  EXPECT_THAT(RunOp("ReduceMean", {"int32[0]<>"}), HasSubstr("mean of zero integers"));
  EXPECT_EQ(RunOp("ReduceLogSumExp", {"float32[0]<>"}), "float32[1]<-inf>");
  EXPECT_EQ(RunOp("ReduceSum", {"float32[0,3]<>", "int64[1]<1>"}), "float32[0,1]<>");
}

TEST(Reduce, IntegersWrapAround) {
  EXPECT_EQ(RunOp("ReduceSum", {"int32[2]<2147483647, 1>"}), "int32[1]<-2147483648>");
  EXPECT_EQ(RunOp("ReduceL1", {"int64[1]<-9223372036854775808>"}), "int64[1]<-9223372036854775808>");
}

TEST(Reduce, RefusesBadAxes) {
  EXPECT_THAT(RunOp("ReduceSum", {kMatrix, "int64[1]<2>"}), HasSubstr("axis 2 is outside of [-2, 2)"));
}

TEST(ArgMax, GivesTheFirstOrLastOfEqualElements) {
  EXPECT_EQ(RunOp("ArgMax", {"float32[2,3]<1, 3, 3, 2, 2, 1>"}, "{axis=1, keepdims=0}"), "int64[2]<1, 0>");
  EXPECT_EQ(RunOp("ArgMax", {"float32[2,3]<1, 3, 3, 2, 2, 1>"}, "{axis=-1, select_last_index=1}"), "int64[2,1]<2, 1>");
  EXPECT_EQ(RunOp("ArgMin", {"int8[3]<1, -3, -3>"}), "int64[1]<1>");
  EXPECT_EQ(RunOp("ArgMax", {"float32[3]<1, nan, 9>"}), "int64[1]<1>");
  EXPECT_THAT(RunOp("ArgMax", {"float32[2,0]<>"}, "{axis=1}"), HasSubstr("no elements"));
  EXPECT_EQ(RunOp("ArgMax", {"float32[0,2]<>"}, "{axis=1}"), "int64[0,1]<>");
  EXPECT_THAT(RunOp("ArgMax", {"float32[2]<1>"}, "{axis=1}"), HasSubstr("axis 1"));
}

TEST(Softmax, UsesTheAxisSinceOperatorSet13) {
  EXPECT_EQ(RunOp("Softmax@13", {"float32[2,2]<0, 0, 1000, 1000>"}), "float32[2,2]<0.5, 0.5, 0.5, 0.5>");
  EXPECT_EQ(RunOp("Softmax@13", {"float32[2,2]<0, 5, 0, 5>"}, "{axis=0}"), "float32[2,2]<0.5, 0.5, 0.5, 0.5>");
  EXPECT_EQ(RunOp("Softmax", {"float32[]<7>"}), "float32[]<1.0>");
  EXPECT_EQ(RunOp("Softmax", {"float32[2,0]<>"}), "float32[2,0]<>");
  EXPECT_EQ(RunOp("LogSoftmax", {"float32[1,1]<7>"}), "float32[1,1]<0.0>");
  EXPECT_THAT(RunOp("Softmax", {"float32[2]<1>"}, "{axis=1}"), HasSubstr("axis 1"));
}

TEST(Softmax, FlattensBeforeOperatorSet13) {
  EXPECT_EQ(RunOp("Softmax@11", {"float32[1,2,2]<1>"}), "float32[1,2,2]<0.25, 0.25, 0.25, 0.25>");
  EXPECT_EQ(RunOp("Hardmax@11", {"float32[1,2,2]<1, 2, 2, 1>"}), "float32[1,2,2]<0.0, 1.0, 0.0, 0.0>");
  EXPECT_EQ(RunOp("Hardmax@13", {"float32[1,2,2]<1, 2, 2, 1>"}), "float32[1,2,2]<0.0, 1.0, 1.0, 0.0>");
}

TEST(CumProd, MultipliesInBothDirections) {
  EXPECT_EQ(RunOp("CumProd", {"int32[3]<1, 2, 3>", "int32[]<0>"}), "int32[3]<1, 2, 6>");
  EXPECT_EQ(RunOp("CumProd", {"int32[3]<1, 2, 3>", "int32[]<0>"}, "{exclusive=1}"), "int32[3]<1, 1, 2>");
  EXPECT_EQ(RunOp("CumProd", {"int32[3]<1, 2, 3>", "int64[]<-1>"}, "{reverse=1}"), "int32[3]<6, 6, 3>");
  EXPECT_EQ(RunOp("CumProd", {"float32[3]<1, 2, 3>", "int64[]<0>"}, "{reverse=1, exclusive=1}"),
            "float32[3]<6.0, 3.0, 1.0>");
  EXPECT_EQ(RunOp("CumProd", {"int64[2]<4294967296, 4294967296>", "int64[]<0>"}), "int64[2]<4294967296, 0>");
  EXPECT_THAT(RunOp("CumProd", {"float32[3]<1>", "int64[]<1>"}), HasSubstr("axis 1"));
}

TEST(CumSum, SumsInBothDirections) {
  EXPECT_EQ(RunOp("CumSum", {"int32[3]<1, 2, 3>", "int32[]<0>"}), "int32[3]<1, 3, 6>");
  EXPECT_EQ(RunOp("CumSum", {"int32[3]<1, 2, 3>", "int32[]<0>"}, "{exclusive=1}"), "int32[3]<0, 1, 3>");
  EXPECT_EQ(RunOp("CumSum", {"int32[3]<1, 2, 3>", "int64[]<-1>"}, "{reverse=1}"), "int32[3]<6, 5, 3>");
  EXPECT_THAT(RunOp("CumSum", {"int32[3]<1, 2, 3>", "int32[]<1>"}), HasSubstr("axis 1"));
}

TEST(TopK, OrdersAndCounts) {
  const char* x = "float32[4]<3, 1, 3, 2>";
  EXPECT_EQ(RunOp("TopK", {x, "int64[1]<2>"}, "", 2, 0), "float32[2]<3.0, 3.0>");
  EXPECT_EQ(RunOp("TopK", {x, "int64[1]<2>"}, "", 2, 1), "int64[2]<0, 2>");
  EXPECT_EQ(RunOp("TopK", {x, "int64[1]<2>"}, "{largest=0}", 2, 1), "int64[2]<1, 3>");
  EXPECT_EQ(RunOp("TopK@1", {x}, "{k=1}", 2, 1), "int64[1]<0>");
  EXPECT_EQ(RunOp("TopK", {x, "int64[1]<0>"}, "", 2, 1), "int64[0]<>");
  EXPECT_EQ(RunOp("TopK", {"float32[2]<nan, 1>", "int64[1]<1>"}, "", 2, 1), "int64[1]<0>");
  EXPECT_THAT(RunOp("TopK", {x, "int64[1]<5>"}, "", 2), HasSubstr("K is 5"));
  EXPECT_THAT(RunOp("TopK", {x, "int64[1]<-1>"}, "", 2), HasSubstr("K is -1"));
}

}  // namespace
}  // namespace mge
