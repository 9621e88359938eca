// SPDX-License-Identifier: Apache-2.0
// NonZero, Unique, Compress, ReverseSequence, NonMaxSuppression, StringNormalizer, TfIdfVectorizer.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(NonZero, ListsCoordinates) {
  EXPECT_EQ(Both("NonZero", {"float32[2,2]<0, 1, 2, 0>"}), "int64[2,2]<0, 1, 1, 0>");
  EXPECT_EQ(Both("NonZero", {"bool[2]<false, true>"}), "int64[1,1]<1>");
  EXPECT_EQ(Both("NonZero", {"string[2]<\"\", \"a\">"}), "int64[1,1]<1>");
  EXPECT_EQ(Both("NonZero", {"int8[0,3]<>"}), "int64[2,0]<>");
  EXPECT_EQ(Both("NonZero", {"int8[]<4>"}), "int64[0,1]<>");
}

TEST(Unique, SortsCountsAndMapsBack) {
  const std::vector<std::string> x = {"float32[6]<2, 1, 1, 3, 4, 3>"};
  EXPECT_EQ(Both("Unique", x, "", 4, 0), "float32[4]<1.0, 2.0, 3.0, 4.0>");
  EXPECT_EQ(Both("Unique", x, "", 4, 1), "int64[4]<1, 0, 3, 4>");
  EXPECT_EQ(Both("Unique", x, "", 4, 2), "int64[6]<1, 0, 0, 2, 3, 2>");
  EXPECT_EQ(Both("Unique", x, "", 4, 3), "int64[4]<2, 1, 2, 1>");
  EXPECT_EQ(Both("Unique", x, "{sorted=0}", 4, 0), "float32[4]<2.0, 1.0, 3.0, 4.0>");
  EXPECT_EQ(Both("Unique", x, "{sorted=0}", 4, 2), "int64[6]<0, 1, 1, 2, 3, 2>");
}

TEST(Unique, OrdersNumbersOfEveryTypeAndSize) {
  EXPECT_EQ(Both("Unique", {"int64[5]<-1, 9223372036854775807, -9223372036854775808, 0, 300>"}),
            "int64[5]<-9223372036854775808, -1, 0, 300, 9223372036854775807>");
  EXPECT_EQ(Both("Unique", {"uint64[3]<18446744073709551615, 0, 256>"}), "uint64[3]<0, 256, 18446744073709551615>");
  EXPECT_EQ(Both("Unique", {"int8[4]<-1, 1, -128, -1>"}, "", 4, 3), "int64[3]<1, 2, 1>");
  EXPECT_EQ(Both("Unique", {"float16[5]<nan, -inf, 2, -2, inf>"}), "float16[5]<-inf, -2.0, 2.0, inf, nan>");
  EXPECT_EQ(Both("Unique", {"float64[4]<0.0, 1e-300, -0.0, -1e-300>"}, "", 4, 2), "int64[4]<1, 2, 1, 0>");
  EXPECT_EQ(Both("Unique", {"bool[3]<true, false, true>"}, "", 4, 1), "int64[2]<1, 0>");
}

TEST(Unique, TakesSlicesStringsNanAndNothing) {
  EXPECT_EQ(Both("Unique", {"int8[2,3]<1, 1, 0, 2, 2, 5>"}, "{axis=1}"), "int8[2,2]<0, 1, 5, 2>");
  EXPECT_EQ(Both("Unique", {"string[3]<\"b\", \"a\", \"b\">"}), "string[2]<\"a\", \"b\">");
  EXPECT_EQ(Both("Unique", {"float32[3]<nan, 1, nan>"}), "float32[2]<1.0, nan>");
  EXPECT_EQ(Both("Unique", {"int8[0]<>"}), "int8[0]<>");
  EXPECT_EQ(Both("Unique", {"int8[]<3>"}), "int8[1]<3>");
  EXPECT_THAT(Both("Unique", {"int8[]<3>"}, "{axis=0}"), HasSubstr("axis 0 is outside of [0, 0)"));
}

TEST(Compress, KeepsElementsWhoseConditionIsTrue) {
  EXPECT_EQ(Both("Compress", {"int8[2,2]<1, 2, 3, 4>", "bool[1]<true>"}, "{axis=1}"), "int8[2,1]<1, 3>");
  EXPECT_EQ(Both("Compress", {"int8[2,2]<1, 2, 3, 4>", "bool[4]<false, true, false, true>"}), "int8[2]<2, 4>");
  EXPECT_EQ(Both("Compress", {"int8[2]<1, 2>", "bool[3]<true, false, false>"}), "int8[1]<1>");
  EXPECT_EQ(Both("Compress", {"int8[0]<>", "bool[0]<>"}), "int8[0]<>");
  EXPECT_THAT(Both("Compress", {"int8[2]<1, 2>", "bool[3]<true, false, true>"}),
              HasSubstr("true condition 2 is outside of [-2, 2)"));
  EXPECT_THAT(Both("Compress", {"int8[2]<1, 2>", "bool[1,1]<true>"}), HasSubstr("its rank must be 1"));
}

TEST(ReverseSequence, ReversesThePrefix) {
  EXPECT_EQ(Both("ReverseSequence", {"int8[2,3]<1, 2, 3, 4, 5, 6>", "int64[2]<2, 0>"}, "{batch_axis=0, time_axis=1}"),
            "int8[2,3]<2, 1, 3, 4, 5, 6>");
  EXPECT_THAT(Both("ReverseSequence", {"int8[2,1]<1, 2>", "int64[1]<3>"}), HasSubstr("is 3; it must be in [0, 2]"));
  EXPECT_THAT(Both("ReverseSequence", {"int8[2,1]<1, 2>", "int64[1]<-1>"}), HasSubstr("is -1; it must be in [0, 2]"));
  EXPECT_THAT(Both("ReverseSequence", {"int8[2,1]<1, 2>", "int64[2]<1, 1>"}), HasSubstr("it must be [1]"));
  EXPECT_THAT(Both("ReverseSequence", {"int8[2,1]<1, 2>", "int64[1]<1>"}, "{time_axis=2}"), HasSubstr("time_axis is 2"));
}

TEST(NonMaxSuppression, KeepsTheBestOfOverlappingBoxes) {
  const char* boxes = "float32[1,3,4]<0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11>";
  const char* scores = "float32[1,1,3]<0.9, 0.95, 0.5>";
  EXPECT_EQ(Both("NonMaxSuppression", {boxes, scores, "int64[1]<3>", "float32[1]<0.5>"}), "int64[2,3]<0, 0, 1, 0, 0, 2>");
  EXPECT_EQ(Both("NonMaxSuppression", {boxes, scores, "int64[1]<3>", "float32[1]<0.5>", "float32[1]<0.6>"}),
            "int64[1,3]<0, 0, 1>");
  EXPECT_EQ(Both("NonMaxSuppression", {boxes, scores}), "int64[0,3]<>");
}

// Returns the kept boxes by the definition: compares every pair.
std::vector<int64_t> KeptOneByOne(const std::vector<float>& boxes, const std::vector<float>& scores, float threshold) {
  auto overlap = [&](int64_t a, int64_t b) {
    auto at = [&](int64_t box, int i) { return boxes[static_cast<size_t>(box * 4 + i)]; };
    auto low = [&](int64_t box, int i) { return std::min(at(box, i), at(box, i + 2)); };
    auto high = [&](int64_t box, int i) { return std::max(at(box, i), at(box, i + 2)); };
    auto area = [&](int64_t box) { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); };
    float height = std::min(high(a, 0), high(b, 0)) - std::max(low(a, 0), low(b, 0));
    float width = std::min(high(a, 1), high(b, 1)) - std::max(low(a, 1), low(b, 1));
    if (height <= 0 || width <= 0) return 0.0f;
    return height * width / (area(a) + area(b) - height * width);
  };
  std::vector<int64_t> order(scores.size()), kept;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t c : order) {
    if (std::none_of(kept.begin(), kept.end(), [&](int64_t k) { return overlap(c, k) > threshold; })) kept.push_back(c);
  }
  return kept;
}

TEST(NonMaxSuppression, AgreesWithTheDefinitionForManyBoxes) {
  std::mt19937 random(3);
  auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  for (float spread : {0.5f, 10.0f, 300.0f}) {  // boxes of size 1 to 3: close together, side by side, far apart
    const int64_t n = 700;
    std::vector<float> boxes, scores;
    for (int64_t i = 0; i < n; ++i) {
      float y = uniform(-spread, spread), x = uniform(-spread, spread), y2 = y + uniform(1, 3), x2 = x + uniform(1, 3);
      if (i % 5 == 0) std::swap(y, y2);
      if (i % 7 == 0) std::swap(x, x2);
      if (i % 11 == 0) x2 = x;  // a box without area
      boxes.insert(boxes.end(), {y, x, y2, x2});
      scores.push_back(std::round(uniform(-20, 20)) / 8);  // many scores are equal
    }
    for (float threshold : {0.0f, 0.3f, 0.7f}) {
      Node node;
      node.op = "NonMaxSuppression";
      node.def = FindOp("", "NonMaxSuppression");
      node.inputs = {0, 1, 2, 3};
      node.outputs = {4};
      auto floats = [](Shape shape, const std::vector<float>& values) {
        Tensor t = *Tensor::Create(DType::kF32, std::move(shape));
        std::copy(values.begin(), values.end(), t.MutableData<float>().begin());
        return t;
      };
      std::vector<HostValue> inputs(4);
      inputs[0].tensor = floats({1, n, 4}, boxes);
      inputs[1].tensor = floats({1, 1, n}, scores);
      inputs[3].tensor = Tensor::Scalar<float>(threshold);
      std::vector<int64_t> expected = KeptOneByOne(boxes, scores, threshold);
      for (int64_t limit : {n, int64_t{100}, int64_t{20}, int64_t{1}}) {
        inputs[2].tensor = Tensor::Scalar<int64_t>(limit);
        auto result = Evaluate(node, inputs);
        ASSERT_TRUE(result.ok()) << FormatError(result.status());
        std::vector<int64_t> rows = (*result)[0].tensor.ToInts(), kept;
        for (size_t i = 2; i < rows.size(); i += 3) kept.push_back(rows[i]);
        if (static_cast<size_t>(limit) < expected.size()) expected.resize(static_cast<size_t>(limit));
        EXPECT_EQ(kept, expected) << spread << " " << threshold << " " << limit;
      }
    }
  }
}

TEST(NonMaxSuppression, HandlesExtremeAndInvalidInputs) {
  const char* scores = "float32[1,1,2]<nan, 0.5>";
  EXPECT_EQ(
      Both("NonMaxSuppression", {"float32[1,2,4]<nan, inf, -inf, 0, 0, 0, 0, 0>", scores, "int64[]<9223372036854775807>"}),
      "int64[1,3]<0, 0, 1>");
  EXPECT_EQ(Both("NonMaxSuppression", {"float32[1,2,4]<0>", scores, "int64[]<-5>"}), "int64[0,3]<>");
  EXPECT_EQ(Both("NonMaxSuppression", {"float32[1,0,4]<>", "float32[1,7,0]<>", "int64[]<5>"}), "int64[0,3]<>");
  EXPECT_THAT(Both("NonMaxSuppression", {"float32[1,2,3]<0>", scores}), HasSubstr("it must be [1,2,4]"));
  EXPECT_THAT(Both("NonMaxSuppression", {"float32[1,2,4]<0>", scores, "_", "float32[]<1.5>"}),
              HasSubstr("iou_threshold is 1.5"));
  EXPECT_THAT(Both("NonMaxSuppression", {"float32[1,2,4]<0>", scores, "int64[2]<1, 2>"}), HasSubstr("must be one integer"));
}

TEST(StringNormalizer, ChangesCaseBeyondAscii) {
  EXPECT_EQ(Both("StringNormalizer", {"string[2]<\"äÉx\", \"ω\">"}, "{case_change_action=\"UPPER\"}"),
            "string[2]<\"ÄÉX\", \"Ω\">");
  EXPECT_EQ(Both("StringNormalizer", {"string[1,2]<\"The\", \"Cat\">"}, "{stopwords=[\"the\"]}"), "string[1,1]<\"Cat\">");
  EXPECT_EQ(Both("StringNormalizer", {"string[1]<\"The\">"}, "{stopwords=[\"the\"], is_case_sensitive=1}"),
            "string[1]<\"The\">");
  EXPECT_EQ(Both("StringNormalizer", {"string[0]<>"}), "string[1]<\"\">");
  EXPECT_THAT(Both("StringNormalizer", {"string[2,1]<\"a\", \"b\">"}), HasSubstr("[C] or [1,C]"));
  EXPECT_THAT(Both("StringNormalizer", {"string[1]<\"\\xc3(\">"}, "{case_change_action=\"LOWER\"}"),
              HasSubstr("not valid UTF-8"));
  EXPECT_THAT(Both("StringNormalizer", {"string[1]<\"I\">"}, "{case_change_action=\"LOWER\", locale=\"tr_TR\"}"),
              HasSubstr("tr_TR"));
}

TEST(StringConcat, JoinsWithBroadcasting) {
  EXPECT_EQ(Both("StringConcat", {"string[2]<\"a\", \"b\">", "string[]<\"-\">"}), "string[2]<\"a-\", \"b-\">");
  EXPECT_EQ(Both("StringConcat", {"string[0]<>", "string[1]<\"-\">"}), "string[0]<>");
}

TEST(StringSplit, FollowsPython) {
  const std::vector<std::string> x = {"string[2]<\" a  b c \", \"\">"};
  EXPECT_EQ(Both("StringSplit", x, "", 2, 0), "string[2,3]<\"a\", \"b\", \"c\", \"\", \"\", \"\">");
  EXPECT_EQ(Both("StringSplit", x, "", 2, 1), "int64[2]<3, 0>");
  EXPECT_EQ(Both("StringSplit", x, "{maxsplit=1}", 2, 0), "string[2,2]<\"a\", \"b c \", \"\", \"\">");
  EXPECT_EQ(Both("StringSplit", {"string[2]<\"a,,b\", \"\">"}, "{delimiter=\",\"}", 2, 1), "int64[2]<3, 1>");
  EXPECT_EQ(Both("StringSplit", {"string[0]<>"}, "", 2, 0), "string[0,0]<>");
}

TEST(TfIdfVectorizer, CountsNGrams) {
  const char* attrs =
      "{mode=\"TFIDF\", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0,2], "
      "ngram_indexes=[0,1,2], pool_int64s=[2,3,5,6], weights=[1.0,1.0,0.5]}";
  EXPECT_EQ(Both("TfIdfVectorizer", {"int32[6]<5, 6, 2, 5, 2, 6>"}, attrs), "float32[3]<2.0, 0.0, 1.0>");
  EXPECT_EQ(Both("TfIdfVectorizer", {"int64[2,2]<3, 3, 5, 6>"}, attrs), "float32[2,3]<0.0, 2.0, 0.0, 0.0, 0.0, 0.5>");
  EXPECT_EQ(Both("TfIdfVectorizer", {"int64[0]<>"}, attrs), "float32[3]<0.0, 0.0, 0.0>");
  EXPECT_THAT(Both("TfIdfVectorizer", {"string[1]<\"a\">"}, attrs), HasSubstr("differs from the pool's"));
}

TEST(TfIdfVectorizer, RefusesAttributesThatDoNotFit) {
  const char* base =
      "{{mode=\"TF\", min_gram_length=1, max_gram_length={}, max_skip_count=0, ngram_counts={}, "
      "ngram_indexes={}, pool_int64s=[1,2,3]}}";
  auto run = [&](auto... a) { return Both("TfIdfVectorizer", {"int64[1]<1>"}, fmt::format(fmt::runtime(base), a...)); };
  EXPECT_EQ(run(1, "[0]", "[0,1,2]"), "float32[3]<1.0, 0.0, 0.0>");
  EXPECT_THAT(run(2, "[0]", "[0,1,2]"), HasSubstr("ngram_counts has 1 entries"));
  EXPECT_THAT(run(2, "[0,2]", "[0,1,2]"), HasSubstr("do not divide a pool of 3"));
  EXPECT_THAT(run(1, "[-1]", "[0,1,2]"), HasSubstr("do not divide a pool of 3"));
  EXPECT_THAT(run(1, "[9]", "[0,1,2]"), HasSubstr("do not divide a pool of 3"));
  EXPECT_THAT(run(1, "[0]", "[0]"), HasSubstr("1 ngram_indexes"));
  EXPECT_THAT(run(1, "[0]", "[0,1,-2]"), HasSubstr("ngram_indexes holds -2"));
}

TEST(RegexFullMatch, MatchesWholeStrings) {
  const std::vector<std::string> x = {"string[3]<\"abc\", \"xabc\", \"\">"};
  EXPECT_EQ(Both("RegexFullMatch", x, "{pattern=\"a.*c\"}"), "bool[3]<true, false, false>");
  EXPECT_EQ(Both("RegexFullMatch", x, "{pattern=\"\"}"), "bool[3]<false, false, true>");
  EXPECT_EQ(Both("RegexFullMatch", {"string[0]<>"}, "{pattern=\".\"}"), "bool[0]<>");
  EXPECT_THAT(Both("RegexFullMatch", x, "{pattern=\"a(\"}"),
              HasSubstr("attribute pattern = 'a(' is not a regular expression"));
}

}  // namespace
}  // namespace mge
