// SPDX-License-Identifier: Apache-2.0
// Operators of language models: positions and caches.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

const char* const kPair = "float32[1,1,1,4]<1, 2, 3, 4>";
const char* const kCos = "float32[2,2]<1, 1, 0, 1>";
const char* const kSin = "float32[2,2]<0, 0, 1, 0>";

TEST(RotaryEmbedding, RotatesPairsByTheAnglesOfThePosition) {
  EXPECT_EQ(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<0>"}), "float32[1,1,1,4]<1.0, 2.0, 3.0, 4.0>");
  EXPECT_EQ(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<1>"}), "float32[1,1,1,4]<-3.0, 2.0, 1.0, 4.0>");
  EXPECT_EQ(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<1>"}, "{interleaved=1}"),
            "float32[1,1,1,4]<-2.0, 1.0, 3.0, 4.0>");
  EXPECT_EQ(Both("RotaryEmbedding", {kPair, "float32[1,1,2]<0, 1>", "float32[1,1,2]<1, 0>"}),
            "float32[1,1,1,4]<-3.0, 2.0, 1.0, 4.0>");
}

TEST(RotaryEmbedding, LeavesTheElementsBehindTheRotatedOnes) {
  EXPECT_EQ(
      Both("RotaryEmbedding", {kPair, "float32[1,1]<0>", "float32[1,1]<1>", "int64[1,1]<0>"}, "{rotary_embedding_dim=2}"),
      "float32[1,1,1,4]<-2.0, 1.0, 3.0, 4.0>");
}

TEST(RotaryEmbedding, UsesTheFirstElementsOfLongerRows) {
  EXPECT_EQ(Both("RotaryEmbedding", {kPair, "float32[2,2]<1, 9, 0, 9>", "float32[2,2]<0, 9, 1, 9>", "int64[1,1]<1>"},
                 "{rotary_embedding_dim=2}"),
            "float32[1,1,1,4]<-2.0, 1.0, 3.0, 4.0>");
}

TEST(RotaryEmbedding, ReadsHeadsOfThreeDimensionsByTheirNumber) {
  EXPECT_EQ(Both("RotaryEmbedding",
                 {"float32[1,2,4]<1, 2, 3, 4, 5, 6, 7, 8>", "float32[2,1]<1, 0>", "float32[2,1]<0, 1>", "int64[1,2]<0, 1>"},
                 "{num_heads=2}"),
            "float32[1,2,4]<1.0, 2.0, 3.0, 4.0, -6.0, 5.0, -8.0, 7.0>");
  EXPECT_EQ(Both("RotaryEmbedding", {"float32[1,2,2,2]<1, 2, 3, 4, 5, 6, 7, 8>", "float32[2,1]<1, 0>", "float32[2,1]<0, 1>",
                                     "int64[1,2]<0, 1>"}),
            "float32[1,2,2,2]<1.0, 2.0, -4.0, 3.0, 5.0, 6.0, -8.0, 7.0>");
}

TEST(RotaryEmbedding, NamesWhatDoesNotFit) {
  EXPECT_THAT(Both("RotaryEmbedding", {"float32[1,1,4]<1>", kCos, kSin, "int64[1,1]<0>"}), HasSubstr("num_heads is 0"));
  EXPECT_THAT(Both("RotaryEmbedding", {"float32[1,1,4]<1>", kCos, kSin, "int64[1,1]<0>"}, "{num_heads=3}"),
              HasSubstr("num_heads = 3 does not divide 4"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<0>"}, "{rotary_embedding_dim=6}"),
              HasSubstr("6 of 4 elements"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<0>"}, "{rotary_embedding_dim=3}"),
              HasSubstr("3 of 4 elements"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, kSin}), HasSubstr("cos_cache"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, "float32[2,1]<0>", "int64[1,1]<0>"}),
              HasSubstr("sin_cache has rows of 1, expected 2"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,2]<0>"}), HasSubstr("position_ids"));
  EXPECT_THAT(Both("RotaryEmbedding", {kPair, kCos, kSin, "int64[1,1]<2>"}), HasSubstr("position 2 is outside of [-2, 2)"));
  EXPECT_THAT(Both("RotaryEmbedding", {"float32[2,4]<1>", kCos, kSin}), HasSubstr("X has 2 dimensions"));
}

}  // namespace
}  // namespace mge
