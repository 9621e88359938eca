// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Unary, GivesKnownValues) {
  EXPECT_EQ(RunOp("Relu", {"float32[3]<-1, 0, 2>"}), "float32[3]<0.0, 0.0, 2.0>");
  EXPECT_EQ(RunOp("Relu", {"int8[3]<-1, 0, 2>"}), "int8[3]<0, 0, 2>");
  EXPECT_EQ(RunOp("LeakyRelu", {"float32[2]<-2, 3>"}, "{alpha=0.5}"), "float32[2]<-1.0, 3.0>");
  EXPECT_EQ(RunOp("Round", {"float32[6]<0.5, 1.5, 2.5, -0.5, -1.5, 2.4>"}), "float32[6]<0.0, 2.0, 2.0, -0.0, -2.0, 2.0>");
  EXPECT_EQ(RunOp("Sign", {"float64[4]<-3, 0, 7, nan>"}), "float64[4]<-1.0, 0.0, 1.0, nan>");
  EXPECT_EQ(RunOp("Sign", {"uint8[2]<0, 7>"}), "uint8[2]<0, 1>");
  EXPECT_EQ(RunOp("Sqrt", {"float16[2]<4, 2>"}), "float16[2]<2.0, 1.4140625>");
  EXPECT_EQ(RunOp("Reciprocal", {"bfloat16[2]<4, -0.5>"}), "bfloat16[2]<0.25, -2.0>");
  EXPECT_EQ(RunOp("Sigmoid", {"float32[3]<0, 1000, -1000>"}), "float32[3]<0.5, 1.0, 0.0>");
  EXPECT_EQ(RunOp("Softplus", {"float32[2]<1000, -1000>"}), "float32[2]<1000.0, 0.0>");
  EXPECT_EQ(RunOp("HardSwish", {"float32[3]<-4, 3, 4>"}), "float32[3]<-0.0, 3.0, 4.0>");
  EXPECT_EQ(RunOp("Swish", {"float32[3]<0, 100, -1000>"}), "float32[3]<0.0, 100.0, -0.0>");
  EXPECT_EQ(RunOp("Swish", {"float16[2]<3, -3>"}, "{alpha=0.0}"), "float16[2]<1.5, -1.5>");
  EXPECT_EQ(RunOp("Shrink", {"int32[3]<-3, 0, 3>"}, "{lambd=1.0, bias=1.0}"), "int32[3]<-2, 0, 2>");
  EXPECT_EQ(RunOp("ThresholdedRelu", {"float32[2]<1, 1.5>"}), "float32[2]<0.0, 1.5>");
  EXPECT_EQ(RunOp("Not", {"bool[2]<true, false>"}), "bool[2]<false, true>");
  EXPECT_EQ(RunOp("BitwiseNot", {"uint8[1]<5>"}), "uint8[1]<250>");
  EXPECT_EQ(RunOp("Erf", {"float32[2]<0, inf>"}), "float32[2]<0.0, 1.0>");
  EXPECT_EQ(RunOp("Gelu", {"float32[2]<0, 100>"}), "float32[2]<0.0, 100.0>");
  EXPECT_EQ(RunOp("com.microsoft::Gelu", {"float32[2]<0, 100>"}), "float32[2]<0.0, 100.0>");
  EXPECT_THAT(RunOp("Gelu", {"float32[]<1>"}, "{approximate=\"fast\"}"), HasSubstr("\"fast\" is not one of none, tanh"));
}

TEST(Unary, AbsAndNegKeepTheLowestInteger) {
  EXPECT_EQ(RunOp("Abs", {"int8[2]<-128, -5>"}), "int8[2]<-128, 5>");
  EXPECT_EQ(RunOp("Neg", {"int64[1]<-9223372036854775808>"}), "int64[1]<-9223372036854775808>");
}

TEST(Unary, RefusesOtherTypes) {
  EXPECT_THAT(RunOp("Exp", {"int32[1]<1>"}), HasSubstr("has type int32"));
  EXPECT_THAT(RunOp("Neg", {"uint8[1]<1>"}), HasSubstr("has type uint8"));
}

TEST(IsInf, DistinguishesTheSigns) {
  EXPECT_EQ(RunOp("IsInf", {"float32[4]<inf, -inf, nan, 1>"}), "bool[4]<true, true, false, false>");
  EXPECT_EQ(RunOp("IsInf", {"float32[2]<inf, -inf>"}, "{detect_positive=0}"), "bool[2]<false, true>");
  EXPECT_EQ(RunOp("IsNaN", {"float16[3]<inf, nan, 1>"}), "bool[3]<false, true, false>");
}

TEST(Selu, OlderOperatorSetsHadOtherDefaults) {
  EXPECT_EQ(RunOp("Selu@1", {"float32[]<1>"}), "float32[]<1.0507>");
  EXPECT_EQ(RunOp("Selu@6", {"float32[]<1>"}), "float32[]<1.050701>");
}

TEST(BitCast, KeepsTheBits) {
  EXPECT_EQ(RunOp("BitCast", {"float32[2]<1, -0.0>"}, "{to=6}"), "int32[2]<1065353216, -2147483648>");
  EXPECT_EQ(RunOp("BitCast", {"uint16[1]<15360>"}, "{to=10}"), "float16[1]<1.0>");
  EXPECT_EQ(RunOp("BitCast", {"uint8[3]<0, 1, 2>"}, "{to=9}"), "bool[3]<false, true, true>");
  EXPECT_EQ(RunOp("BitCast", {"int64[0]<>"}, "{to=11}"), "float64[0]<>");
  EXPECT_THAT(RunOp("BitCast", {"float32[1]<1>"}, "{to=7}"), HasSubstr("float32 have 4 bytes, those of int64 8"));
  EXPECT_THAT(RunOp("BitCast", {"float32[1]<1>"}, "{to=8}"), HasSubstr("to"));
}

TEST(Binary, Broadcasts) {
  EXPECT_EQ(RunOp("Add", {"float32[2,1]<1, 2>", "float32[3]<10, 20, 30>"}),
            "float32[2,3]<11.0, 21.0, 31.0, 12.0, 22.0, 32.0>");
  EXPECT_EQ(RunOp("Sub", {"int32[]<1>", "int32[2]<1, 2>"}), "int32[2]<0, -1>");
  EXPECT_EQ(RunOp("Add", {"float32[0,3]<>", "float32[3]<1>"}), "float32[0,3]<>");
  EXPECT_EQ(RunOp("Mul", {"float32[2,0]<>", "float32[2,1]<1>"}), "float32[2,0]<>");
  EXPECT_THAT(RunOp("Add", {"float32[2]<1>", "float32[3]<1>"}), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(RunOp("Add", {"float32[2]<1>", "float64[2]<1>"}), HasSubstr("different types"));
}

TEST(Binary, SupportsTheOldAxisAttribute) {
  EXPECT_EQ(RunOp("Add@6", {"float32[2,2,1]<0>", "float32[2]<1, 2>"}, "{axis=1, broadcast=1}"),
            "float32[2,2,1]<1.0, 2.0, 1.0, 2.0>");
  EXPECT_THAT(RunOp("Add@6", {"float32[2,2]<0>", "float32[2]<1, 2>"}, "{axis=5, broadcast=1}"), HasSubstr("axis 5"));
  EXPECT_THAT(RunOp("Add@7", {"float32[2,2]<0>", "float32[2]<1, 2>"}, "{axis=1}"), HasSubstr("no attribute 'axis'"));
}

TEST(Binary, IntegersWrapAround) {
  EXPECT_EQ(RunOp("Add", {"int8[1]<127>", "int8[1]<1>"}), "int8[1]<-128>");
  EXPECT_EQ(RunOp("Mul", {"uint16[1]<65535>", "uint16[1]<65535>"}), "uint16[1]<1>");
  EXPECT_EQ(RunOp("Sub", {"int64[1]<-9223372036854775808>", "int64[1]<1>"}), "int64[1]<9223372036854775807>");
}

TEST(Div, RoundsIntegersTowardsZero) {
  EXPECT_EQ(RunOp("Div", {"int32[4]<7, -7, 7, -7>", "int32[4]<2, 2, -2, -2>"}), "int32[4]<3, -3, -3, 3>");
  EXPECT_EQ(RunOp("Div", {"float32[2]<1, 0>", "float32[2]<0, 0>"}).substr(0, 15), "float32[2]<inf,");
}

TEST(Div, RefusesIntegerDivisionsByZero) {
  for (const char* type : {"int8", "int16", "int32", "int64", "uint8", "uint64"}) {
    EXPECT_THAT(RunOp("Div", {fmt::format("{}[1]<1>", type), fmt::format("{}[1]<0>", type)}), HasSubstr("divided by zero"));
    EXPECT_THAT(RunOp("Mod", {fmt::format("{}[1]<1>", type), fmt::format("{}[1]<0>", type)}), HasSubstr("divided by zero"));
    EXPECT_THAT(RunOp("Mod", {fmt::format("{}[1]<1>", type), fmt::format("{}[1]<0>", type)}, "{fmod=1}"),
                HasSubstr("divided by zero"));
    const auto result = RunText(fmt::format("const a = {0}[1]<1>\nconst b = {0}[1]<0>\ny = Div(a, b)\noutput y\n", type));
    EXPECT_EQ(ErrorId(result.status()), errors::kNoResult.id);
  }
}

TEST(Div, WrapsTheLowestIntegerAround) {
  for (const auto& [type, lowest] :
       {std::pair("int8", "-128"), {"int16", "-32768"}, {"int32", "-2147483648"}, {"int64", "-9223372036854775808"}}) {
    const std::string a = fmt::format("{}[2]<{}, 7>", type, lowest), b = fmt::format("{}[1]<-1>", type);
    EXPECT_EQ(RunOp("Div", {a, b}), fmt::format("{}[2]<{}, -7>", type, lowest));
    EXPECT_EQ(RunOp("Mod", {a, b}), fmt::format("{}[2]<0, 0>", type));
  }
}

TEST(Mod, GivesTheSignThatFmodSelects) {
  EXPECT_EQ(RunOp("Mod", {"int32[4]<7, -7, 7, -7>", "int32[4]<3, 3, -3, -3>"}), "int32[4]<1, 2, -2, -1>");
  EXPECT_EQ(RunOp("Mod", {"int32[4]<7, -7, 7, -7>", "int32[4]<3, 3, -3, -3>"}, "{fmod=1}"), "int32[4]<1, -1, 1, -1>");
  EXPECT_EQ(RunOp("Mod", {"int64[1]<-9223372036854775808>", "int64[1]<-1>"}), "int64[1]<0>");
  EXPECT_EQ(RunOp("Mod", {"float32[1]<-7.5>", "float32[1]<2>"}, "{fmod=1}"), "float32[1]<-1.5>");
  EXPECT_EQ(RunOp("Mod", {"float32[4]<7.5, -7.5, 7.5, -7.5>", "float32[4]<2, 2, -2, -2>"}),
            "float32[4]<1.5, 0.5, -0.5, -1.5>");
  EXPECT_EQ(RunOp("Mod", {"float32[4]<0, -0.0, 1, -1>", "float32[4]<-2, 2, -inf, -inf>"}),
            "float32[4]<-0.0, 0.0, -inf, -1.0>");
}

TEST(Pow, MixesTypes) {
  EXPECT_EQ(RunOp("Pow", {"int32[3]<2, -3, 10>", "int64[3]<10, 3, 0>"}), "int32[3]<1024, -27, 1>");
  EXPECT_EQ(RunOp("Pow", {"float32[2]<4, 2>", "int32[2]<2, -1>"}), "float32[2]<16.0, 0.5>");
  EXPECT_EQ(RunOp("Pow", {"int64[2]<4, 9>", "float32[]<0.5>"}), "int64[2]<2, 3>");
  EXPECT_EQ(RunOp("Pow", {"int32[4]<1, -1, -1, 2>", "int32[4]<-5, -5, -4, -1>"}), "int32[4]<1, -1, 1, 0>");
  EXPECT_THAT(RunOp("Pow", {"int32[1]<0>", "int32[1]<-1>"}), HasSubstr("divided by zero"));
}

TEST(PRelu, BroadcastsTheSlopeOnly) {
  EXPECT_EQ(RunOp("PRelu", {"float32[2,2]<-1, 1, -2, 2>", "float32[2]<0.5, 3>"}), "float32[2,2]<-0.5, 1.0, -1.0, 2.0>");
  EXPECT_THAT(RunOp("PRelu", {"float32[2]<-1, 1>", "float32[2,2]<0.5>"}), HasSubstr("cannot be broadcast"));
  EXPECT_EQ(RunOp("PRelu@6", {"float32[1,2,2]<-1>", "float32[2]<2, 3>"}), "float32[1,2,2]<-2.0, -2.0, -3.0, -3.0>");
}

TEST(Compare, NanIsNeverTrue) {
  EXPECT_EQ(RunOp("Less", {"float32[2]<1, nan>", "float32[2]<2, 2>"}), "bool[2]<true, false>");
  EXPECT_EQ(RunOp("GreaterOrEqual", {"float32[2]<2, nan>", "float32[]<2>"}), "bool[2]<true, false>");
  EXPECT_EQ(RunOp("Equal", {"string[2]<\"a\", \"b\">", "string[]<\"b\">"}), "bool[2]<false, true>");
  EXPECT_EQ(RunOp("Equal", {"bool[2]<true, false>", "bool[]<true>"}), "bool[2]<true, false>");
  EXPECT_EQ(RunOp("Xor", {"bool[2]<true, false>", "bool[]<true>"}), "bool[2]<false, true>");
}

TEST(BitShift, ShiftsAllBitsOut) {
  EXPECT_EQ(RunOp("BitShift", {"uint8[3]<255, 1, 1>", "uint8[3]<1, 7, 8>"}, "{direction=\"LEFT\"}"),
            "uint8[3]<254, 128, 0>");
  EXPECT_EQ(RunOp("BitShift", {"uint64[2]<256, 1>", "uint64[2]<8, 64>"}, "{direction=\"RIGHT\"}"), "uint64[2]<1, 0>");
  EXPECT_EQ(RunOp("BitShift", {"int8[4]<-9, -9, 9, -9>", "int8[4]<1, 8, 8, -1>"}, "{direction=\"RIGHT\"}"),
            "int8[4]<-5, -1, 0, -1>");
  EXPECT_EQ(RunOp("BitShift", {"int8[3]<65, 1, 1>", "int8[3]<1, 8, -1>"}, "{direction=\"LEFT\"}"), "int8[3]<-126, 0, 0>");
  EXPECT_THAT(RunOp("BitShift", {"uint8[1]<1>", "uint8[1]<1>"}, "{direction=\"UP\"}"), HasSubstr("'UP'"));
  EXPECT_THAT(RunOp("BitShift", {"uint8[1]<1>", "uint8[1]<1>"}), HasSubstr("'direction' is required"));
}

TEST(Variadic, ReducesAcrossInputs) {
  EXPECT_EQ(RunOp("Sum", {"float32[2]<1, 2>", "float32[]<10>", "float32[1]<100>"}), "float32[2]<111.0, 112.0>");
  EXPECT_EQ(RunOp("Mean", {"float16[1]<1>", "float16[1]<2>"}), "float16[1]<1.5>");
  EXPECT_EQ(RunOp("Max", {"int8[2]<1, -2>", "int8[2]<0, 5>"}), "int8[2]<1, 5>");
  EXPECT_EQ(RunOp("Min", {"float32[2]<1, nan>", "float32[2]<0, 5>"}), "float32[2]<0.0, nan>");
  EXPECT_EQ(RunOp("Max", {"float32[2]<1, 2>", "float32[2]<nan, 5>"}), "float32[2]<nan, 5.0>");
  EXPECT_EQ(RunOp("Max", {"float32[1]<1>"}), "float32[1]<1.0>");
  EXPECT_THAT(RunOp("Max", {}), StartsWith("error"));
}

TEST(Where, BroadcastsThreeWays) {
  EXPECT_EQ(RunOp("Where", {"bool[2,1]<true, false>", "int64[2]<1, 2>", "int64[]<9>"}), "int64[2,2]<1, 2, 9, 9>");
  EXPECT_EQ(RunOp("Where", {"bool[2]<true, false>", "string[2]<\"a\", \"b\">", "string[]<\"z\">"}),
            "string[2]<\"a\", \"z\">");
}

TEST(BitShift, RefusesAWrongDirectionInTheShapeRule) {
  auto graph = ParseGraphText("input x : uint8[2]\ny = BitShift(x, x) {direction=\"UP\"}\noutput y\n");
  ASSERT_TRUE(graph.ok());
  absl::Status status = BindNode(*graph, 0);
  if (status.ok()) status = InferTypes(*graph);
  EXPECT_EQ(ErrorId(status), errors::kInvalidNode.id) << FormatError(status);
}

TEST(Elementwise, PropagatesNanOfDataParametersAndLimits) {
  EXPECT_EQ(RunOp("HardSigmoid", {"float32[2]<nan, 0>"}), "float32[2]<nan, 0.5>");
  EXPECT_EQ(RunOp("HardSwish", {"float32[1]<nan>"}), "float32[1]<nan>");
  EXPECT_EQ(RunOp("Clip", {"float32[2]<nan, 3>", "float32[]<0>", "float32[]<1>"}), "float32[2]<nan, 1.0>");
  EXPECT_EQ(RunOp("Clip", {"float32[2]<1, 3>", "float32[]<nan>"}), "float32[2]<nan, nan>");
  EXPECT_EQ(RunOp("Clip", {"float64[1]<1>", "_", "float64[]<nan>"}), "float64[1]<nan>");
}

TEST(Clip, UsesTheLimitsOfEveryOperatorSet) {
  EXPECT_EQ(RunOp("Clip", {"float32[3]<-5, 0.5, 5>", "float32[]<-1>", "float32[]<1>"}), "float32[3]<-1.0, 0.5, 1.0>");
  EXPECT_EQ(RunOp("Clip", {"int8[3]<-5, 0, 5>", "_", "int8[]<1>"}), "int8[3]<-5, 0, 1>");
  EXPECT_EQ(RunOp("Clip@6", {"float16[3]<-5, 0.5, 5>"}, "{min=-1.0, max=1.0}"), "float16[3]<-1.0, 0.5, 1.0>");
  EXPECT_EQ(RunOp("Clip@6", {"float32[2]<-5, nan>"}), "float32[2]<-5.0, nan>");
  EXPECT_EQ(RunOp("Clip", {"float32[1]<0>", "float32[]<2>", "float32[]<1>"}), "float32[1]<1.0>");
  EXPECT_THAT(RunOp("Clip", {"float32[1]<0>", "float32[2]<2>"}), HasSubstr("one element"));
}

TEST(Trilu, KeepsATriangle) {
  EXPECT_EQ(RunOp("Trilu", {"int64[2,2]<1, 2, 3, 4>"}), "int64[2,2]<1, 2, 0, 4>");
  EXPECT_EQ(RunOp("Trilu", {"int64[2,2]<1, 2, 3, 4>", "int64[]<-1>"}, "{upper=0}"), "int64[2,2]<0, 0, 3, 0>");
  EXPECT_EQ(RunOp("Trilu", {"int64[1,2]<1, 2>", "int64[]<9223372036854775807>"}), "int64[1,2]<0, 0>");
  EXPECT_THAT(RunOp("Trilu", {"int64[2]<1, 2>"}), HasSubstr("rank 1"));
}

TEST(Cast, ConvertsBetweenNumbers) {
  EXPECT_EQ(RunOp("Cast", {"float32[5]<1.9, -1.9, nan, 1e30, -1e30>"}, "{to=6}"),
            "int32[5]<1, -1, 0, 2147483647, -2147483648>");
  EXPECT_EQ(RunOp("Cast", {"float64[2]<-1, 300>"}, "{to=2}"), "uint8[2]<0, 255>");
  EXPECT_EQ(RunOp("Cast", {"int32[2]<-1, 300>"}, "{to=2}"), "uint8[2]<255, 44>");
  EXPECT_EQ(RunOp("Cast", {"float32[3]<0, -0.5, nan>"}, "{to=9}"), "bool[3]<false, true, true>");
  EXPECT_EQ(RunOp("Cast", {"bool[2]<true, false>"}, "{to=1}"), "float32[2]<1.0, 0.0>");
  EXPECT_EQ(RunOp("Cast", {"float32[3]<65504, 65519, 65520>"}, "{to=10}"), "float16[3]<65504.0, 65504.0, inf>");
  EXPECT_EQ(RunOp("Cast", {"float32[2]<1.00390625, 1.01171875>"}, "{to=16}"), "bfloat16[2]<1.0, 1.015625>");
}

TEST(Cast, RoundsOnceFromDouble) {
  // A value just above the middle of 1 and the next float16. Rounded to float32 first, it would be the middle and give 1.
  EXPECT_EQ(RunOp("Cast", {"float64[1]<1.00048828125001>"}, "{to=10}"), "float16[1]<1.0009766>");
}

TEST(Cast, ConvertsToAndFromText) {
  EXPECT_EQ(RunOp("Cast", {"string[4]<\"3.14\", \"1e-5\", \"NaN\", \"-INF\">"}, "{to=1}"),
            "float32[4]<3.14, 1e-05, nan, -inf>");
  EXPECT_EQ(RunOp("Cast", {"string[1]<\" 42 \">"}, "{to=7}"), "int64[1]<42>");
  EXPECT_EQ(RunOp("Cast", {"float32[3]<0.5, nan, -inf>"}, "{to=8}"), "string[3]<\"0.5\", \"NaN\", \"-INF\">");
  EXPECT_THAT(RunOp("Cast", {"string[1]<\"ten\">"}, "{to=1}"), HasSubstr("'ten' is not a number"));
}

TEST(Cast, RefusesUnknownTargets) {
  EXPECT_THAT(RunOp("Cast", {"float32[1]<1>"}, "{to=99}"), HasSubstr("99"));
  EXPECT_THAT(RunOp("Cast", {"float32[1]<1>"}), HasSubstr("'to' is required"));
  EXPECT_EQ(RunOp("Cast@1", {"float32[1]<1>"}, "{to=\"INT64\"}"), "int64[1]<1>");
  EXPECT_EQ(RunOp("CastLike", {"float32[1]<1.5>", "int8[0]<>"}), "int8[1]<1>");
}

}  // namespace
}  // namespace mge
