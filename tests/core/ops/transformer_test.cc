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

TEST(RotaryEmbedding, KeepsTheElementsAfterTheRotatedOnes) {
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

const char* const kCache = "int32[2,3,1]<1, 2, 3, 4, 5, 6>";
const char* const kTokens = "int32[2,2,1]<10, 20, 30, 40>";

TEST(TensorScatter, WritesTheTokensFromTheIndexOfEachBatch) {
  EXPECT_EQ(Both("TensorScatter", {kCache, kTokens, "int64[2]<0, 1>"}), "int32[2,3,1]<10, 20, 3, 4, 30, 40>");
  EXPECT_EQ(Both("TensorScatter", {kCache, kTokens}), "int32[2,3,1]<10, 20, 3, 30, 40, 6>");
  EXPECT_EQ(Both("TensorScatter", {"string[1,2]<\"a\", \"b\">", "string[1,1]<\"c\">", "int64[1]<1>"}, "{axis=1}"),
            "string[1,2]<\"a\", \"c\">");
  EXPECT_EQ(Both("TensorScatter", {kCache, "int32[2,0,1]<>", "int64[2]<0, 3>"}), "int32[2,3,1]<1, 2, 3, 4, 5, 6>");
}

TEST(TensorScatter, CutsTheCacheInEveryDimensionBeforeTheSequence) {
  EXPECT_EQ(Both("TensorScatter", {"int32[2,2,2]<0>", "int32[2,2,1]<1, 2, 3, 4>", "int64[2]<0, 1>"}, "{axis=-1}"),
            "int32[2,2,2]<1, 0, 2, 0, 0, 3, 0, 4>");
}

TEST(TensorScatter, WrapsAroundInTheModeCircular) {
  EXPECT_EQ(Both("TensorScatter", {kCache, kTokens, "int64[2]<2, -1>"}, "{mode=\"circular\"}"),
            "int32[2,3,1]<20, 2, 10, 40, 5, 30>");
  EXPECT_EQ(
      Both("TensorScatter", {kCache, kTokens, "int64[2]<9223372036854775807, -9223372036854775808>"}, "{mode=\"circular\"}"),
      "int32[2,3,1]<1, 10, 20, 4, 30, 40>");
}

TEST(TensorScatter, NamesWhatDoesNotFit) {
  EXPECT_THAT(Both("TensorScatter", {kCache, kTokens, "int64[2]<2, 0>"}), HasSubstr("index 2 leaves no place for 2 tokens"));
  EXPECT_THAT(Both("TensorScatter", {kCache, kTokens, "int64[2]<0, -1>"}), HasSubstr("index -1"));
  EXPECT_THAT(Both("TensorScatter", {kCache, kTokens, "int64[1]<0>"}), HasSubstr("write_indices"));
  EXPECT_THAT(Both("TensorScatter", {kTokens, kCache}), HasSubstr("the update has 3 tokens, the cache 2"));
  EXPECT_THAT(Both("TensorScatter", {kCache, kTokens}, "{axis=0}"), HasSubstr("axis 0 is the batch"));
  EXPECT_THAT(Both("TensorScatter", {kCache, kTokens}, "{mode=\"ring\"}"), HasSubstr("ring"));
}

TEST(SwiGlu, MultipliesByTheSwishOfTheGate) {
  EXPECT_EQ(Both("SwiGLU", {"float32[2]<0, 100>", "float32[2]<5, -3>"}), "float32[2]<0.0, -300.0>");
  EXPECT_EQ(Both("SwiGLU", {"float16[2]<3, -3>", "float16[2]<2, 1>"}, "{alpha=0.0}"), "float16[2]<3.0, -1.5>");
  EXPECT_THAT(Both("SwiGLU", {"float32[2]<0>", "float32[1]<0>"}), HasSubstr("B"));
}

// One head with keys and values of one element, two positions, scale 1.
std::string Linear(const std::string& rule, const std::vector<std::string>& more, int wanted = 0) {
  std::vector<std::string> inputs = {"float32[1,2,1]<1, 2>", "float32[1,2,1]<1, 3>", "float32[1,2,1]<2, 1>"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return Both("LinearAttention", inputs, "{q_num_heads=1, kv_num_heads=1, scale=1.0, update_rule=\"" + rule + "\"}", 2,
              wanted);
}

TEST(LinearAttention, FollowsEachRule) {
  EXPECT_EQ(Linear("linear", {}), "float32[1,2,1]<2.0, 10.0>");
  EXPECT_EQ(Linear("linear", {"float32[1,1,1,1]<10>"}), "float32[1,2,1]<12.0, 30.0>");
  EXPECT_EQ(Linear("linear", {}, 1), "float32[1,1,1,1]<5.0>");
  EXPECT_EQ(Linear("gated", {"_", "float32[1,2,1]<0, -inf>"}), "float32[1,2,1]<2.0, 6.0>");
  EXPECT_EQ(Linear("delta", {"_", "_", "float32[1,2,1]<0.5, 1>"}), "float32[1,2,1]<1.0, -10.0>");
  EXPECT_EQ(Linear("gated_delta", {"_", "float32[1,2,1]<0, -inf>", "float32[1,2,1]<0.5, 1>"}), "float32[1,2,1]<1.0, 6.0>");
}

TEST(LinearAttention, QueryHeadsShareTheStateOfAKeyHead) {
  EXPECT_EQ(Both("LinearAttention",
                 {"float16[1,1,4]<1, 2, 3, 4>", "float16[1,1,1]<2>", "float16[1,1,1]<1>", "float32[1,1,1,1]<0>"},
                 "{q_num_heads=4, kv_num_heads=1, update_rule=\"linear\"}", 2, 0),
            "float16[1,1,4]<2.0, 4.0, 6.0, 8.0>");
}

TEST(LinearAttention, NamesWhatDoesNotFit) {
  EXPECT_THAT(Linear("gated", {}), HasSubstr("update_rule 'gated' needs the input decay"));
  EXPECT_THAT(Linear("linear", {"_", "_", "float32[1,2,1]<1>"}), HasSubstr("update_rule 'linear' excludes the input beta"));
  EXPECT_THAT(Linear("gated", {"_", "float32[1,2,3]<0>"}), HasSubstr("decay has shape [1,2,3]"));
  EXPECT_THAT(Linear("linear", {"float32[1,1,1,2]<0>"}), HasSubstr("past_state has shape [1,1,1,2]"));
  EXPECT_THAT(Both("LinearAttention", {"float32[1,2,3]<1>", "float32[1,2,2]<1>", "float32[1,2,2]<1>"},
                   "{q_num_heads=3, kv_num_heads=2, update_rule=\"linear\"}", 2),
              HasSubstr("q_num_heads = 3 must be a positive multiple of kv_num_heads = 2"));
}

std::string Flex(const std::string& attributes, const std::string& v = "float32[1,1,2,1]<1, 3>") {
  return RunOp("ai.onnx.preview::FlexAttention", {"float32[1,1,1,1]<0>", "float32[1,1,2,1]<1, 2>", v}, attributes);
}

TEST(FlexAttention, RunsTheBodiesOnScoresAndProbabilities) {
  EXPECT_EQ(Flex(""), "float32[1,1,1,1]<2.0>");
  EXPECT_EQ(Flex("{score_mod=graph {\ninput s\nconst m = float32[2]<0, -inf>\nt = Add(s, m)\noutput t\n}}"),
            "float32[1,1,1,1]<1.0>");
  EXPECT_EQ(Flex("{prob_mod=graph {\ninput p\nt = Add(p, p)\noutput t\n}}"), "float32[1,1,1,1]<4.0>");
}

}  // namespace
}  // namespace mge
