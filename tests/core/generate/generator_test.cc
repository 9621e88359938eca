// SPDX-License-Identifier: Apache-2.0
#include "core/generate/generator.h"

#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "core/base/errors.h"
#include "core/engine/run_control.h"
#include "tests/core/generate/decoders.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const std::vector<int64_t> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3};

struct Kind {
  const char* name;
  const char* model;
  bool shared;
};
const std::string kWindowCaches = WindowDecoder(true);
const Kind kKinds[] = {{"SharedCaches", kAttentionDecoder, true},
                       {"NewCaches", kAttentionDecoder, false},
                       {"WindowCaches", kWindowCaches.c_str(), false},
                       {"WindowCachesBesideShared", kWindowCaches.c_str(), true},
                       {"State", kConvolutionDecoder, false}};

class EachDecoder : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Generator> New(int64_t chunk = 512) { return Make(session_, DecoderConfig(GetParam().shared, chunk)); }
  const std::shared_ptr<Session> session_ = DecoderSession(CpuRuntime(), GetParam().model);
};
INSTANTIATE_TEST_SUITE_P(Kinds, EachDecoder, testing::ValuesIn(kKinds), [](const auto& p) { return p.param.name; });

// Returns the continuation as a model without caches would compute it: every token from the whole sequence.
std::vector<int64_t> FromTheStart(const std::shared_ptr<Session>& session, bool shared, int count) {
  std::vector<int64_t> all = kPrompt;
  for (int i = 0; i < count; ++i) {
    auto generator = Make(session, DecoderConfig(shared));
    EXPECT_TRUE(generator->Append(all).ok());
    all.push_back(generator->Next()->id);
  }
  return all;
}

TEST_P(EachDecoder, ContinuesAsIfEachTokenWereComputedFromTheWholeSequence) {
  auto generator = New();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  const std::vector<int64_t> tokens = Continue(*generator, 20);
  EXPECT_EQ(tokens, FromTheStart(session_, GetParam().shared, 20));
  EXPECT_GT(std::set<int64_t>(tokens.begin() + 25, tokens.end()).size(), 2u);  // the model does not repeat one token
}

TEST_P(EachDecoder, GivesTheSameTokensForAPromptInChunks) {
  std::vector<std::vector<int64_t>> results;
  for (const int64_t chunk : {1, 3, 16, 512}) {
    auto generator = New(chunk);
    ASSERT_TRUE(generator->Append(kPrompt).ok());
    results.push_back(Continue(*generator, 10));
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

TEST_P(EachDecoder, RepeatsItselfAfterRewinding) {
  auto generator = New();
  SamplingOptions options = {.temperature = 1.5, .seed = 7};
  ASSERT_TRUE(generator->SetSampling(options).ok());
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  const std::vector<int64_t> tokens = Continue(*generator, 12);
  for (const int64_t keep : {30, 25, 10, 1}) {
    ASSERT_TRUE(generator->Rewind(keep).ok());
    EXPECT_THAT(generator->tokens(), SizeIs(keep));
    ASSERT_TRUE(
        generator
            ->Append(std::span(tokens).subspan(static_cast<size_t>(keep), tokens.size() - static_cast<size_t>(keep) - 5))
            .ok());
    EXPECT_EQ(Continue(*generator, 5), tokens) << keep;
  }
  ASSERT_TRUE(generator->Rewind(0).ok());
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  EXPECT_EQ(Continue(*generator, 12), tokens);
}

TEST_P(EachDecoder, GoesOnAfterACancelledRun) {
  auto generator = New(), other = New();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  ASSERT_TRUE(other->Append(kPrompt).ok());
  Continue(*generator, 4);
  RunControl control;
  control.Cancel();
  EXPECT_EQ(ErrorId(generator->Next(&control).status()), errors::kCancelled.id);
  EXPECT_THAT(generator->tokens(), SizeIs(kPrompt.size() + 4));
  EXPECT_EQ(Continue(*generator, 4), Continue(*other, 8));
}

TEST_P(EachDecoder, DrawsOtherTokensWithAnotherSeed) {
  std::set<std::vector<int64_t>> results;
  for (const uint64_t seed : {1, 2, 3}) {
    auto generator = New();
    ASSERT_TRUE(generator->SetSampling({.temperature = 2, .seed = seed}).ok());
    ASSERT_TRUE(generator->Append(kPrompt).ok());
    results.insert(Continue(*generator, 10));
  }
  EXPECT_THAT(results, SizeIs(3));
}

std::unique_ptr<Generator> Attention(GenerationConfig config = DecoderConfig(true), int64_t max_length = 0) {
  return Make(DecoderSession(CpuRuntime(), kAttentionDecoder), std::move(config), max_length);
}

TEST(Generation, WithSharedAndWithNewCachesIsTheSame) {
  std::vector<std::vector<int64_t>> results;
  for (const bool shared : {true, false}) {
    auto generator = Attention(DecoderConfig(shared));
    ASSERT_TRUE(generator->Append(kPrompt).ok());
    results.push_back(Continue(*generator, 300));  // shared caches grow
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Generation, WithACacheOfTheLatestTokensIsTheSame) {
  const auto runtime = CpuRuntime();
  auto all = Make(DecoderSession(runtime, WindowDecoder(false).c_str()), DecoderConfig(false));
  ASSERT_TRUE(all->Append(kPrompt).ok());
  const std::vector<int64_t> tokens = Continue(*all, 40);
  for (const int64_t slack : {0, 1, 5}) {
    GenerationConfig config = DecoderConfig(true);
    config.window_slack = slack;
    auto window = Make(DecoderSession(runtime, kWindowCaches.c_str()), config);
    ASSERT_TRUE(window->Append(kPrompt).ok());
    EXPECT_EQ(Continue(*window, 40), tokens) << slack;
  }
}

TEST(Generation, OnADeviceWithQueuesIsTheSame) {
  if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  for (const Kind& kind : kKinds) {
    std::vector<std::vector<int64_t>> results;
    for (const char* device : {"cpu0", "virtual0"}) {
      auto runtime = CpuRuntime({{"virtual.devices", "1"}});
      auto generator = Make(DecoderSession(runtime, kind.model, device), DecoderConfig(kind.shared));
      ASSERT_TRUE(generator->Append(kPrompt).ok());
      Continue(*generator, 8);
      ASSERT_TRUE(generator->Rewind(28).ok());
      results.push_back(Continue(*generator, 8));
    }
    EXPECT_EQ(results[0], results[1]) << kind.name;
  }
}

TEST(Generation, EndsAtTheMaximalLengthAndSaysHowManyTokensFit) {
  auto generator = Attention(DecoderConfig(true), 10);
  absl::Status status = generator->Append(kPrompt);
  EXPECT_EQ(ErrorId(status), errors::kLimit.id);
  EXPECT_THAT(FormatError(status), HasSubstr("the sequence has 0 of at most 10 tokens, so 10 fit"));
  ASSERT_TRUE(generator->Append(std::span(kPrompt).first(8)).ok());
  EXPECT_EQ(generator->Next()->end, EndOfText::kNone);
  EXPECT_EQ(generator->Next()->end, EndOfText::kLength);
  status = generator->Next().status();
  EXPECT_EQ(ErrorId(status), errors::kLimit.id);
  EXPECT_THAT(FormatError(status), HasSubstr("10 tokens, and 0 more fit"));
  EXPECT_THAT(generator->tokens(), SizeIs(10));
}

TEST(Generation, EndsAtAnEndToken) {
  auto plain = Attention();
  ASSERT_TRUE(plain->Append(kPrompt).ok());
  const int64_t third = Continue(*plain, 3).back();
  GenerationConfig config = DecoderConfig(true);
  config.end_tokens = {100, third};
  auto generator = Attention(config);
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  int count = 0;
  EndOfText end = EndOfText::kNone;
  while (end == EndOfText::kNone) end = generator->Next()->end, ++count;
  EXPECT_EQ(end, EndOfText::kEndToken);
  EXPECT_EQ(generator->tokens().back(), third);
  EXPECT_LE(count, 3);
}

TEST(Generation, RefusesIdsOutsideOfTheVocabulary) {
  auto generator = Attention();
  for (const int64_t id : {int64_t{-1}, int64_t{20}}) {
    const absl::Status status = generator->Append(std::vector<int64_t>{1, id});
    EXPECT_EQ(ErrorId(status), errors::kIndexOutOfRange.id);
    EXPECT_THAT(FormatError(status), HasSubstr("token 1 of the appended ones has the id " + std::to_string(id)));
    EXPECT_THAT(FormatError(status), HasSubstr("the ids 0 to 19"));
  }
  EXPECT_TRUE(generator->tokens().empty());
}

TEST(Generation, NeedsAPrompt) {
  const absl::Status status = Attention()->Next().status();
  EXPECT_EQ(ErrorId(status), errors::kApiMisuse.id);
  EXPECT_THAT(FormatError(status), HasSubstr("append a prompt first"));
}

TEST(Generation, RefusesToRewindToMoreTokensThanThereAre) {
  auto generator = Attention();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  EXPECT_EQ(ErrorId(generator->Rewind(26)), errors::kApiMisuse.id);
  EXPECT_EQ(ErrorId(generator->Rewind(-1)), errors::kApiMisuse.id);
  EXPECT_TRUE(generator->Rewind(25).ok());
}

TEST(Generation, RefusesAMaximalLengthBeyondTheContext) {
  const auto generator = Generator::Create(DecoderSession(CpuRuntime(), kAttentionDecoder), DecoderConfig(true), 501);
  EXPECT_EQ(ErrorId(generator.status()), errors::kApiMisuse.id);
  EXPECT_THAT(FormatError(generator.status()), HasSubstr("context has 500 tokens"));
}

TEST(Generation, SaysThatLogitsAreNotNumbersAndGoesOn) {
  auto generator = Attention();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  (*generator->Logits())[7] = std::numeric_limits<float>::quiet_NaN();
  const absl::Status status = generator->Next().status();
  EXPECT_EQ(ErrorId(status), errors::kNoResult.id);
  EXPECT_THAT(FormatError(status), HasSubstr("the logit of token 7 is nan"));
  EXPECT_THAT(FormatError(status), HasSubstr("token 25 of the sequence"));
  auto other = Attention();
  ASSERT_TRUE(other->Append(kPrompt).ok());
  EXPECT_EQ(Continue(*generator, 5), Continue(*other, 5));
}

TEST(Generation, ChoosesAmongTheLogitsThatTheCallerLeft) {
  auto generator = Attention();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  for (int i = 0; i < 5; ++i) {
    auto logits = generator->Logits();
    ASSERT_TRUE(logits.ok());
    ASSERT_THAT(*logits, SizeIs(20));
    for (size_t id = 0; id < 20; ++id) {
      if (id != 11) (*logits)[id] = -std::numeric_limits<float>::infinity();
    }
    EXPECT_EQ(generator->Next()->id, 11);
  }
  for (float& logit : *generator->Logits()) logit = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(FormatError(generator->Next().status()), HasSubstr("all logits are -infinity"));
}

TEST(Generation, NamesTheLengthOfTheSequenceIfTheMemoryLimitIsReached) {
  auto runtime = CpuRuntime({{"memory.limit", "cpu0=44KiB"}});  // for caches of 256 tokens
  auto generator = Make(DecoderSession(runtime, kAttentionDecoder), DecoderConfig(true));
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  absl::Status status;
  while (status.ok()) status = generator->Next().status();
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id) << FormatError(status);
  EXPECT_GT(generator->tokens().size(), 256u);
  EXPECT_THAT(FormatError(status), HasSubstr(std::to_string(generator->tokens().size()) + " tokens"));
}

TEST(SharedCaches, ThatCannotGrowSayHowManyTokensFitAndStayAsTheyAre) {
  auto session = DecoderSession(CpuRuntime({{"memory.limit", "cpu0=24KiB"}}), kAttentionDecoder);
  auto caches = Caches::Find(*session, DecoderConfig(true), 5000);
  ASSERT_TRUE(caches.ok());
  ASSERT_TRUE(caches->Reserve(0, 100).ok());
  const absl::Status status = caches->Reserve(100, 1000);
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(FormatError(status),
              HasSubstr("the caches of 1000 tokens need 64000 bytes; the present memory holds 256 tokens"));
  EXPECT_EQ(caches->InputOf(0).tensor.shape(), (Shape{1, 1, 256, 8}));
}

TEST(Generation, OfTwoThreadsWithOneGeneratorIsRefused) {
  auto generator = Attention();
  ASSERT_TRUE(generator->Append(kPrompt).ok());
  std::atomic<int> refused{0}, other{0};
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) {
      const absl::Status status = generator->Next().status();
      if (!status.ok()) ++(ErrorId(status) == errors::kApiMisuse.id ? refused : other);
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  EXPECT_EQ(other, 0);
  EXPECT_THAT(generator->tokens(), SizeIs(kPrompt.size() + 200 - static_cast<size_t>(refused)));
}

TEST(Generation, ReportsTheBytesOfATokenWithoutTablesOfRows) {
  auto generator = Attention();
  EXPECT_EQ(generator->cache_bytes_per_token(), 64u);
  EXPECT_GE(generator->weight_bytes(), (16 * 16 + 2 * 16 * 8 + 16 * 20) * 4u);
  EXPECT_LT(generator->weight_bytes(), (16 * 16 + 2 * 16 * 8 + 16 * 20) * 4u + 64);  // small integers
}

TEST(Generation, RefusesAModelWithAnInputThatItDoesNotKnow) {
  const auto session = DecoderSession(CpuRuntime(), kConvolutionDecoder);
  GenerationConfig config = DecoderConfig(false);
  config.position_ids = "positions";
  const auto generator = Generator::Create(session, config);
  EXPECT_EQ(ErrorId(generator.status()), errors::kUnsupportedFeature.id);
  EXPECT_THAT(FormatError(generator.status()), HasSubstr("an input 'position_ids' that generation does not know"));
  config.caches = {{"past_%d", "present_%d"}};
  EXPECT_THAT(FormatError(Generator::Create(session, config).status()), HasSubstr("no caches of earlier tokens"));
}

TEST(Generation, SaysThatAModelDoesNotWriteIntoSharedCaches) {
  constexpr char kConcat[] = R"(
input input_ids : int64[1,S]
input past_key_values.0.key : float32[1,1,N,20]
const table = float32[20,20]<0.5>
const axes = int64[1]<1>
logits = Gather(table, input_ids) {axis=0}
row = Unsqueeze(logits, axes)
present.0.key = Concat(past_key_values.0.key, row) {axis=2}
output logits
output present.0.key
)";
  auto generator = Make(DecoderSession(CpuRuntime(), kConcat), DecoderConfig(true));
  ASSERT_TRUE(generator->Append(std::vector<int64_t>{1}).ok());
  EXPECT_THAT(FormatError(generator->Next().status()), HasSubstr("set search.past_present_share_buffer"));
  generator = Make(DecoderSession(CpuRuntime(), kConcat), DecoderConfig(false));
  ASSERT_TRUE(generator->Append(std::vector<int64_t>{1}).ok());
  EXPECT_TRUE(generator->Next().ok());
}

TEST(Generation, SaysThatAModelReturnsCachesOfAnotherShape) {
  constexpr char kConstant[] = R"(
input input_ids : int64[1,S]
input past_key_values.0.key : float32[B,1,N,20]
const table = float32[20,20]<0.5>
const rows = float32[1,1,2,20]<0.5>
logits = Gather(table, input_ids) {axis=0}
present.0.key = Identity(rows)
output logits
output present.0.key
)";
  auto generator = Make(DecoderSession(CpuRuntime(), kConstant), DecoderConfig(false));
  ASSERT_TRUE(generator->Append(std::vector<int64_t>{1, 2, 3}).ok());
  const absl::Status status = generator->Next().status();
  EXPECT_EQ(ErrorId(status), errors::kUnsupportedFeature.id);
  EXPECT_THAT(FormatError(status),
              HasSubstr("float32[1,1,3,20] was expected after 3 tokens, the model returned float32[1,1,2,20]"));
}

}  // namespace
}  // namespace mge
