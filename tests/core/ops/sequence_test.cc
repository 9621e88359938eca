// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals.
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

std::string Last(std::string_view text) {
  auto results = RunText(text);
  if (!results.ok()) return "error: " + ErrorTitle(results.status());
  return TensorToText(results->back().tensor);
}

const std::string kTwo =
    "const a = int8[2]<1, 2>\nconst b = int8[1]<3>\ns = SequenceConstruct(a, b)\nconst p0 = int64[]<0>\n"
    "const p1 = int64[]<-1>\nconst p2 = int64[]<2>\nconst p9 = int64[]<-9223372036854775808>\n";

TEST(Sequence, KeepsTensorsOfDifferentShapes) {
  EXPECT_EQ(Last(kTwo + "y = SequenceLength(s)\noutput y\n"), "int64[]<2>");
  EXPECT_EQ(Last(kTwo + "y = SequenceAt(s, p0)\noutput y\n"), "int8[2]<1, 2>");
  EXPECT_EQ(Last(kTwo + "y = SequenceAt(s, p1)\noutput y\n"), "int8[1]<3>");
  EXPECT_EQ(Last(kTwo + "e = SequenceErase(s, p0)\ny = SequenceAt(e, p0)\noutput y\n"), "int8[1]<3>");
  EXPECT_EQ(Last(kTwo + "e = SequenceErase(s)\ny = SequenceLength(e)\noutput y\n"), "int64[]<1>");
  EXPECT_EQ(Last(kTwo + "e = SequenceInsert(s, b, p0)\ny = SequenceAt(e, p0)\noutput y\n"), "int8[1]<3>");
  EXPECT_EQ(Last(kTwo + "e = SequenceInsert(s, a, p2)\ny = SequenceAt(e, p1)\noutput y\n"), "int8[2]<1, 2>");
}

TEST(Sequence, NamesAPositionOutOfRangeAndTheLimit) {
  EXPECT_THAT(Last(kTwo + "y = SequenceAt(s, p2)\noutput y\n"), HasSubstr("position 2 is outside of [-2, 2)"));
  EXPECT_THAT(Last(kTwo + "e = SequenceErase(s, p9)\ny = SequenceLength(e)\noutput y\n"),
              HasSubstr("position -9223372036854775808 is outside of [-2, 2)"));
  EXPECT_THAT(Last(kTwo + "e = SequenceInsert(s, a, p9)\ny = SequenceLength(e)\noutput y\n"),
              HasSubstr("is outside of [-2, 2]"));
  EXPECT_THAT(Last("s = SequenceEmpty() {dtype=3}\ne = SequenceErase(s)\ny = SequenceLength(e)\noutput y\n"),
              HasSubstr("position -1 is outside of [0, 0)"));
}

TEST(Sequence, RefusesASecondElementType) {
  EXPECT_THAT(Last("const a = int8[1]<1>\nconst b = int16[1]<1>\ns = SequenceConstruct(a, b)\ny = SequenceLength(s)\n"
                   "output y\n"),
              HasSubstr("they must be the same"));
  EXPECT_THAT(Last("const a = int8[1]<1>\ns = SequenceEmpty()\ne = SequenceInsert(s, a)\ny = SequenceLength(e)\n"
                   "output y\n"),
              HasSubstr("they must be the same"));
  EXPECT_THAT(Last("s = SequenceConstruct()\ny = SequenceLength(s)\noutput y\n"), HasSubstr("no input"));
}

TEST(SplitToSequence, CutsAndConcatFromSequenceJoins) {
  const std::string x =
      "const x = int8[2,3]<1, 2, 3, 4, 5, 6>\nconst two = int64[]<2>\nconst zero = int64[]<0>\n"
      "const l = int64[2]<1, 2>\nconst bad = int64[2]<1, 1>\nconst p = int64[]<-1>\n";
  EXPECT_EQ(Last(x + "s = SplitToSequence(x, two) {axis=1}\ny = SequenceAt(s, p)\noutput y\n"), "int8[2,1]<3, 6>");
  EXPECT_EQ(Last(x + "s = SplitToSequence(x, l) {axis=1}\ny = SequenceAt(s, p)\noutput y\n"), "int8[2,2]<2, 3, 5, 6>");
  EXPECT_EQ(Last(x + "s = SplitToSequence(x) {keepdims=0}\ny = SequenceAt(s, p)\noutput y\n"), "int8[3]<4, 5, 6>");
  EXPECT_EQ(Last(x + "s = SplitToSequence(x, l) {axis=1}\ny = ConcatFromSequence(s) {axis=-1}\noutput y\n"),
            "int8[2,3]<1, 2, 3, 4, 5, 6>");
  EXPECT_EQ(Last(x + "s = SplitToSequence(x) {keepdims=0}\ny = ConcatFromSequence(s) {axis=1, new_axis=1}\noutput y\n"),
            "int8[3,2]<1, 4, 2, 5, 3, 6>");
  EXPECT_THAT(Last(x + "s = SplitToSequence(x, zero)\ny = SequenceLength(s)\noutput y\n"), HasSubstr("split is 0"));
  EXPECT_THAT(Last(x + "s = SplitToSequence(x, bad) {axis=1}\ny = SequenceLength(s)\noutput y\n"), HasSubstr("add up to 2"));
  EXPECT_THAT(Last(x + "s = SplitToSequence(x, l) {axis=1}\ny = ConcatFromSequence(s) {axis=0}\noutput y\n"),
              HasSubstr("does not match"));
  EXPECT_THAT(Last("s = SequenceEmpty()\ny = ConcatFromSequence(s) {axis=0}\noutput y\n"), HasSubstr("empty"));
}

TEST(SequenceMap, RunsTheBodyForEveryElement) {
  EXPECT_EQ(Last(kTwo + "m = SequenceMap(s, b) {body=graph {\ninput e\ninput f\nr = Concat(e, f) {axis=0}\noutput r\n}}\n"
                        "y = SequenceAt(m, p0)\noutput y\n"),
            "int8[3]<1, 2, 3>");
  EXPECT_THAT(Last(kTwo + "t = SequenceConstruct(a)\n"
                          "m = SequenceMap(s, t) {body=graph {\ninput e\ninput f\nr = Concat(e, f) {axis=0}\noutput r\n}}\n"
                          "y = SequenceLength(m)\noutput y\n"),
              HasSubstr("has 1 elements, input 0 has 2"));
}

TEST(Optional, HoldsATensorOrASequenceOrNothing) {
  EXPECT_EQ(Last(kTwo + "o = Optional(a)\ny = OptionalGetElement(o)\noutput y\n"), "int8[2]<1, 2>");
  EXPECT_EQ(Last(kTwo + "o = Optional(s)\nt = OptionalGetElement(o)\ny = SequenceLength(t)\noutput y\n"), "int64[]<2>");
  EXPECT_EQ(Last(kTwo + "o = Optional(s)\ny = OptionalHasElement(o)\noutput y\n"), "bool[]<true>");
  EXPECT_EQ(Last("o = Optional() {type=\"seq(tensor(float32))\"}\ny = OptionalHasElement(o)\noutput y\n"), "bool[]<false>");
  EXPECT_EQ(Last("y = OptionalHasElement()\noutput y\n"), "bool[]<false>");
  EXPECT_EQ(Last(kTwo + "y = OptionalGetElement(a)\noutput y\n"), "int8[2]<1, 2>");
  EXPECT_THAT(Last("o = Optional() {type=\"tensor(int8)\"}\ny = OptionalGetElement(o)\noutput y\n"), HasSubstr("is empty"));
  EXPECT_THAT(Last("o = Optional() {type=\"map(int8)\"}\ny = OptionalHasElement(o)\noutput y\n"),
              HasSubstr("is not the type"));
  EXPECT_THAT(Last("o = Optional()\ny = OptionalHasElement(o)\noutput y\n"), HasSubstr("neither an input nor"));
}

}  // namespace
}  // namespace mge
