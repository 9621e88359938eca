// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND, Scatter, ScatterElements, ScatterND: results, and errors of indices out of range.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

const char* const kFour = "int8[2,2]<1, 2, 3, 4>";

TEST(Gather, TakesSlicesAlongTheAxis) {
  EXPECT_EQ(Both("Gather", {kFour, "int64[3]<-1, 0, 1>"}), "int8[3,2]<3, 4, 1, 2, 3, 4>");
  EXPECT_EQ(Both("Gather", {kFour, "int32[]<0>"}, "{axis=-1}"), "int8[2]<1, 3>");
  EXPECT_EQ(Both("Gather", {"string[2]<\"a\", \"b\">", "int64[1]<1>"}), "string[1]<\"b\">");
  EXPECT_EQ(Both("Gather", {kFour, "int64[0]<>"}), "int8[0,2]<>");
  EXPECT_EQ(Both("Gather", {"int8[2,0]<>", "int64[1]<1>"}), "int8[1,0]<>");
}

TEST(Gather, NamesTheIndexAndItsBound) {
  for (const char* index : {"2", "-3", "9223372036854775807", "-9223372036854775808"}) {
    std::string indices = fmt::format("int64[1]<{}>", index);
    EXPECT_THAT(Both("Gather", {kFour, indices}), HasSubstr(fmt::format("index {} is outside of [-2, 2)", index)));
    EXPECT_THAT(Both("GatherElements", {"int8[2]<1, 2>", indices}),
                HasSubstr(fmt::format("index {} is outside of [-2, 2)", index)));
    EXPECT_THAT(Both("GatherND", {"int8[2]<1, 2>", indices}),
                HasSubstr(fmt::format("index {} is outside of [-2, 2)", index)));
    EXPECT_THAT(Both("ScatterElements", {"int8[2]<1, 2>", indices, "int8[1]<5>"}),
                HasSubstr(fmt::format("index {} is outside of [-2, 2)", index)));
    EXPECT_THAT(Both("ScatterND", {"int8[2]<1, 2>", indices, "int8[]<5>"}),
                HasSubstr(fmt::format("index {} is outside of [-2, 2)", index)));
  }
  EXPECT_THAT(Both("Gather", {"int8[0]<>", "int64[1]<0>"}), HasSubstr("index 0 is outside of [0, 0)"));
  EXPECT_THAT(Both("Gather", {"int8[]<1>", "int64[1]<0>"}), HasSubstr("axis 0 is outside of [0, 0)"));
}

TEST(Gather, FailsWithTheDocumentedError) {
  auto results = RunText("const x = int8[2]<1>\nconst i = int64[]<2>\ny = Gather(x, i) as \"lookup\"\noutput y\n");
  EXPECT_EQ(ErrorId(results.status()), errors::kIndexOutOfRange.id);
  EXPECT_THAT(FormatError(results.status()), HasSubstr("lookup"));
}

TEST(GatherElements, ReplacesOneCoordinate) {
  EXPECT_EQ(Both("GatherElements", {kFour, "int64[2,1]<1, -2>"}, "{axis=1}"), "int8[2,1]<2, 3>");
  EXPECT_EQ(Both("GatherElements", {kFour, "int64[0,2]<>"}), "int8[0,2]<>");
  EXPECT_THAT(Both("GatherElements", {kFour, "int64[1,3]<0>"}), HasSubstr("exceed the data's shape"));
  EXPECT_THAT(Both("GatherElements", {kFour, "int64[1]<0>"}), HasSubstr("its rank must be 2"));
}

TEST(GatherND, TakesCoordinatesAndBatches) {
  EXPECT_EQ(Both("GatherND", {kFour, "int64[2,2]<0, 0, 1, -1>"}), "int8[2]<1, 4>");
  EXPECT_EQ(Both("GatherND", {kFour, "int64[2,1]<1, 0>"}, "{batch_dims=1}"), "int8[2]<2, 3>");
  EXPECT_EQ(Both("GatherND", {kFour, "int64[0,2]<>"}), "int8[0]<>");
}

TEST(GatherND, RefusesIndicesThatDoNotFit) {
  EXPECT_THAT(Both("GatherND", {kFour, "int64[1,3]<0>"}), HasSubstr("indices have 3 coordinates"));
  EXPECT_THAT(Both("GatherND", {kFour, "int64[1,0]<>"}), HasSubstr("indices have 0 coordinates"));
  EXPECT_THAT(Both("GatherND", {kFour, "int64[3,1]<0>"}, "{batch_dims=1}"),
              HasSubstr("batch dimension 0 is 2 in the data and 3 in the indices"));
  EXPECT_THAT(Both("GatherND", {kFour, "int64[2,1]<0>"}, "{batch_dims=2}"), HasSubstr("batch_dims 2 is outside"));
  EXPECT_THAT(Both("GatherND", {"int8[]<1>", "int64[1]<0>"}), HasSubstr("at least one dimension"));
}

TEST(ScatterElements, SetsAndJoins) {
  const char* x = "float32[3]<1, 2, 3>";
  EXPECT_EQ(Both("ScatterElements", {x, "int64[2]<0, -1>", "float32[2]<7, 8>"}), "float32[3]<7.0, 2.0, 8.0>");
  EXPECT_EQ(Both("ScatterElements", {x, "int64[2]<1, 1>", "float32[2]<7, 8>"}, "{reduction=\"add\"}"),
            "float32[3]<1.0, 17.0, 3.0>");
  EXPECT_EQ(Both("ScatterElements", {x, "int64[2]<1, 1>", "float32[2]<7, 8>"}, "{reduction=\"max\"}"),
            "float32[3]<1.0, 8.0, 3.0>");
  EXPECT_EQ(Both("ScatterElements", {x, "int64[1]<1>", "float32[1]<nan>"}, "{reduction=\"min\"}"),
            "float32[3]<1.0, nan, 3.0>");
  EXPECT_EQ(Both("ScatterElements", {"int8[1]<127>", "int64[1]<0>", "int8[1]<1>"}, "{reduction=\"add\"}"), "int8[1]<-128>");
  EXPECT_EQ(Both("Scatter@9", {x, "int64[1]<1>", "float32[1]<9>"}), "float32[3]<1.0, 9.0, 3.0>");
  EXPECT_EQ(Both("ScatterElements", {x, "int64[0]<>", "float32[0]<>"}), "float32[3]<1.0, 2.0, 3.0>");
  EXPECT_EQ(Both("ScatterElements", {"string[2]<\"a\", \"b\">", "int64[1]<1>", "string[1]<\"c\">"}),
            "string[2]<\"a\", \"c\">");
}

TEST(ScatterElements, RefusesInputsThatDoNotFit) {
  const char* x = "float32[3]<1, 2, 3>";
  EXPECT_THAT(Both("ScatterElements", {x, "int64[2]<0, 1>", "float32[1]<7>"}), HasSubstr("it must be [2]"));
  EXPECT_THAT(Both("ScatterElements", {x, "int64[1]<0>", "float64[1]<7>"}), HasSubstr("they must be the same"));
  EXPECT_THAT(Both("ScatterElements", {x, "int64[1]<0>", "float32[1]<7>"}, "{reduction=\"mean\"}"),
              HasSubstr("\"mean\" is not one of"));
  EXPECT_THAT(Both("ScatterElements", {"string[1]<\"a\">", "int64[1]<0>", "string[1]<\"b\">"}, "{reduction=\"add\"}"),
              HasSubstr("on string"));
}

TEST(ScatterND, SetsSlices) {
  EXPECT_EQ(Both("ScatterND", {kFour, "int64[1,1]<1>", "int8[1,2]<8, 9>"}), "int8[2,2]<1, 2, 8, 9>");
  EXPECT_EQ(Both("ScatterND", {kFour, "int64[2,2]<0, 0, 0, 0>", "int8[2]<2, 3>"}, "{reduction=\"mul\"}"),
            "int8[2,2]<6, 2, 3, 4>");
  EXPECT_EQ(Both("ScatterND", {kFour, "int64[0,2]<>", "int8[0]<>"}), "int8[2,2]<1, 2, 3, 4>");
  EXPECT_THAT(Both("ScatterND", {kFour, "int64[1,1]<1>", "int8[1]<8>"}), HasSubstr("it must be [1,2]"));
  EXPECT_THAT(Both("ScatterND", {kFour, "int64[1,3]<1>", "int8[1]<8>"}), HasSubstr("indices have 3 coordinates"));
}

}  // namespace
}  // namespace mge
