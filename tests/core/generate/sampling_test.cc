// SPDX-License-Identifier: Apache-2.0
#include "core/generate/sampling.h"

#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "gmock/gmock.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::SizeIs;

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<int64_t> Ids(const std::vector<Candidate>& candidates) {
  std::vector<int64_t> out;
  for (const Candidate& c : candidates) out.push_back(c.id);
  return out;
}

TEST(RepetitionPenalty, MakesEachTokenOfTheSequenceLessProbableOnce) {
  std::vector<float> logits = {4, -4, 4, 0};
  PenalizeRepetition(logits, std::vector<int64_t>{0, 1, 0, 9, -1}, 2);
  EXPECT_THAT(logits, ElementsAre(2, -8, 4, 0));
}

TEST(Greedy, TakesTheFirstOfTheLargestLogits) { EXPECT_EQ(LargestLogit(std::vector<float>{1, 3, 2, 3}), 1); }

TEST(Probabilities, AreThoseOfTheSoftmaxAtTheTemperature) {
  const std::vector<float> logits = {0, std::log(3.0f), kNever};
  const std::vector<Candidate> warm = MostProbable(logits, 1, 0), cold = MostProbable(logits, 0.5, 0);
  ASSERT_THAT(Ids(warm), ElementsAre(1, 0));  // a token that is excluded is not there
  EXPECT_NEAR(warm[0].probability, 0.75, 1e-6);
  EXPECT_NEAR(cold[0].probability, 0.9, 1e-6);
}

TEST(Probabilities, OfLargeLogitsAreFinite) {
  const std::vector<Candidate> all = MostProbable(std::vector<float>{1e30f, -1e30f}, 1e-6, 0);
  EXPECT_EQ(all[0].probability, 1);
  EXPECT_EQ(all[1].probability, 0);
}

TEST(TopK, KeepsTheMostProbableTokens) {
  EXPECT_THAT(Ids(MostProbable(std::vector<float>{1, 5, 3, 5, 4}, 1, 3)), ElementsAre(1, 3, 4));
  EXPECT_THAT(MostProbable(std::vector<float>{1, 2}, 1, 9), SizeIs(2));
}

TEST(TopP, KeepsTheFewestTokensThatReachTheSum) {
  const std::vector<Candidate> all = {{4, 0.5}, {2, 0.3}, {7, 0.2}};
  for (const auto& [p, count] : {std::pair{0.1, 1u}, {0.5, 1u}, {0.51, 2u}, {0.8, 2u}, {0.81, 3u}, {1.0, 3u}}) {
    std::vector<Candidate> some = all;
    KeepTopP(some, p);
    EXPECT_THAT(some, SizeIs(count)) << p;
  }
}

TEST(MinP, KeepsTokensWithAFractionOfTheLargestProbability) {
  const std::vector<Candidate> all = {{4, 0.5}, {2, 0.3}, {7, 0.2}};
  for (const auto& [p, count] : {std::pair{0.0, 3u}, {0.4, 3u}, {0.5, 2u}, {0.7, 1u}, {1.0, 1u}}) {
    std::vector<Candidate> some = all;
    KeepMinP(some, p);
    EXPECT_THAT(some, SizeIs(count)) << p;
  }
}

TEST(Draws, FollowTheProbabilities) {
  const std::vector<Candidate> all = {{4, 0.5}, {2, 0.3}, {7, 0.2}};
  EXPECT_EQ(Draw(all, 0), 4);
  EXPECT_EQ(Draw(all, 0.49), 4);
  EXPECT_EQ(Draw(all, 0.51), 2);
  EXPECT_EQ(Draw(all, 0.81), 7);
  int count[8] = {};
  for (uint64_t i = 0; i < 100000; ++i) ++count[Draw(all, UniformAt(3, i))];
  EXPECT_NEAR(count[4], 50000, 1000);
  EXPECT_NEAR(count[2], 30000, 1000);
  EXPECT_NEAR(count[7], 20000, 1000);
}

TEST(Draws, OfAPositionAreThoseOfTheSeed) {
  EXPECT_EQ(UniformAt(1, 5), UniformAt(1, 5));
  EXPECT_NE(UniformAt(1, 5), UniformAt(2, 5));
  EXPECT_NE(UniformAt(1, 5), UniformAt(1, 6));
}

TEST(TokenChoice, WithTemperatureZeroIgnoresTheOtherOptionsButThePenalty) {
  std::vector<float> logits = {1, 4, 3};
  EXPECT_EQ(*SelectToken(logits, {}, {.top_k = 1, .top_p = 0.1}), 1);
  EXPECT_EQ(*SelectToken(logits, std::vector<int64_t>{1}, {.repetition_penalty = 2}), 2);
}

TEST(TokenChoice, RefusesLogitsThatCannotBeCompared) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = {1, bad};
    const absl::Status status = SelectToken(logits, {}, {}).status();
    EXPECT_EQ(ErrorId(status), errors::kNoResult.id);
    EXPECT_THAT(FormatError(status), HasSubstr("the logit of token 1"));
  }
}

TEST(SamplingOptions, OutOfTheirRangeAreNamed) {
  const std::pair<SamplingOptions, const char*> wrong[] = {{{.temperature = -1}, "temperature is -1"},
                                                           {{.temperature = std::nan("")}, "temperature is nan"},
                                                           {{.top_k = -2}, "top_k is -2"},
                                                           {{.top_p = 0}, "top_p is 0"},
                                                           {{.top_p = 1.5}, "top_p is 1.5"},
                                                           {{.min_p = 2}, "min_p is 2"},
                                                           {{.repetition_penalty = 0}, "repetition_penalty is 0"}};
  for (const auto& [options, text] : wrong) {
    EXPECT_EQ(ErrorId(CheckSampling(options)), errors::kApiMisuse.id);
    EXPECT_THAT(FormatError(CheckSampling(options)), HasSubstr(text));
  }
  EXPECT_TRUE(CheckSampling({}).ok());
}

}  // namespace
}  // namespace mge
