// SPDX-License-Identifier: Apache-2.0
// Batches: sequences that join and leave have the tokens that a generator chooses for each of them alone.
#include "core/generate/batch.h"

#include <map>

#include "core/base/errors.h"
#include "core/engine/run_control.h"
#include "tests/core/generate/decoders.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A layer of attention whose caches have free rows in front: the mask and the positions say so. As exporters of PyTorch write it.
constexpr char kMaskedDecoder[] = R"(
input input_ids : int64[B,S]
input attention_mask : int64[B,T]
input position_ids : int64[B,S]
input past_key_values.0.key : float32[B,1,N,8]
input past_key_values.0.value : float32[B,1,N,8]
const table = float32[20,16]<0.5>
const places = float32[512,16]<0.5>
const wq = float32[16,16]<0.5>
const wk = float32[16,8]<0.5>
const wv = float32[16,8]<0.5>
const head = float32[16,20]<0.5>
const axes = int64[2]<1,2>
e = Gather(table, input_ids) {axis=0}
p = Gather(places, position_ids) {axis=0}
x = Add(e, p)
q = MatMul(x, wq)
k = MatMul(x, wk)
v = MatMul(x, wv)
seen = Cast(attention_mask) {to=9}
mask = Unsqueeze(seen, axes)
y, present.0.key, present.0.value = Attention(q, k, v, mask, past_key_values.0.key, past_key_values.0.value) {is_causal=1,q_num_heads=2,kv_num_heads=1}
z = Sub(y, x)
logits = MatMul(z, head)
output logits
output present.0.key
output present.0.value
)";

std::string ForSeveral(std::string model) {
  for (size_t at; (at = model.find("int64[1,")) != model.npos && model[at + 8] >= 'A';) model.replace(at, 8, "int64[B,");
  for (size_t at; (at = model.find("int32[1,S")) != model.npos;) model.replace(at, 8, "int32[B,");
  return model;
}

struct Kind {
  const char* name;
  std::string model;
  bool shared;
  const char* reason;  // against common runs
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {{"GroupQueryAttention", ForSeveral(kAttentionDecoder), false, ""},
                                          {"GroupQueryAttentionInPlace", ForSeveral(kAttentionDecoder), true, ""},
                                          {"Masked", kMaskedDecoder, false, ""},
                                          {"State", ForSeveral(kConvolutionDecoder), false, ""},
                                          {"OneSequence", kAttentionDecoder, true, "for one sequence"}};
  return kinds;
}

class EachBatch : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Batch> New(BatchOptions options = {}) {
    auto batch = Batch::Create(session_, DecoderConfig(GetParam().shared), options);
    EXPECT_TRUE(batch.ok()) << FormatError(batch.status());
    return batch.ok() ? *std::move(batch) : nullptr;
  }
  std::vector<int64_t> Alone(const std::vector<int64_t>& prompt, int count, const SamplingOptions& sampling = {}) {
    auto generator = Make(session_, DecoderConfig(GetParam().shared));
    EXPECT_TRUE(generator->SetSampling(sampling).ok());
    EXPECT_TRUE(generator->Append(prompt).ok());
    return Continue(*generator, count);
  }
  const std::shared_ptr<Session> session_ = DecoderSession(CpuRuntime(), GetParam().model.c_str());
};
INSTANTIATE_TEST_SUITE_P(Kinds, EachBatch, testing::ValuesIn(Kinds()), [](const auto& p) { return p.param.name; });

std::vector<int64_t> TokensOf(const Batch& batch, int64_t sequence) {
  const auto tokens = batch.Tokens(sequence);
  EXPECT_TRUE(tokens.ok());
  return tokens.ok() ? std::vector<int64_t>(tokens->begin(), tokens->end()) : std::vector<int64_t>();
}

TEST_P(EachBatch, GivesTheTokensOfSeparateGenerationWhileSequencesJoinAndLeave) {
  const std::vector<std::vector<int64_t>> prompts = {
      {3, 1, 4}, {2}, {5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3}, {7, 7}};
  const int counts[] = {12, 30, 5, 9}, joins[] = {0, 0, 3, 6};
  auto batch = New();
  EXPECT_THAT(batch->reason_for_single_runs(), HasSubstr(GetParam().reason));
  EXPECT_EQ(batch->reason_for_single_runs().empty(), GetParam().reason[0] == 0);
  std::map<int64_t, size_t> sequences;
  size_t added = 0;
  for (int step = 0; added < prompts.size() || step < 40; ++step) {
    for (; added < prompts.size() && joins[added] <= step; ++added) {
      const auto sequence = batch->Add(prompts[added], {}, counts[added]);
      ASSERT_TRUE(sequence.ok()) << FormatError(sequence.status());
      sequences[*sequence] = added;
    }
    const auto tokens = batch->Step();
    ASSERT_TRUE(tokens.ok()) << FormatError(tokens.status());
  }
  for (const auto& [sequence, i] : sequences) EXPECT_EQ(TokensOf(*batch, sequence), Alone(prompts[i], counts[i])) << i;
  EXPECT_THAT(*batch->Step(), IsEmpty());
}

TEST_P(EachBatch, SamplesEachSequenceWithItsOptions) {
  const SamplingOptions first = {.temperature = 2, .seed = 1}, second = {.temperature = 1, .top_k = 5, .seed = 2};
  auto batch = New();
  ASSERT_TRUE(batch->Add(std::vector<int64_t>{3, 1}, first, 10).ok());
  ASSERT_TRUE(batch->Add(std::vector<int64_t>{4}, second, 10).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(batch->Step().ok());
  EXPECT_EQ(TokensOf(*batch, 0), Alone({3, 1}, 10, first));
  EXPECT_EQ(TokensOf(*batch, 1), Alone({4}, 10, second));
}

TEST_P(EachBatch, GoesOnAfterARemovalAndACancelledStep) {
  auto batch = New();
  for (const int64_t id : {3, 4, 5}) ASSERT_TRUE(batch->Add(std::vector<int64_t>{id, id}, {}, 0).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(batch->Step().ok());
  RunControl cancelled;
  cancelled.Cancel();
  EXPECT_EQ(ErrorId(batch->Step(&cancelled).status()), errors::kCancelled.id);
  ASSERT_TRUE(batch->Remove(1).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(batch->Step().ok());
  EXPECT_EQ(TokensOf(*batch, 0), Alone({3, 3}, 6));
  EXPECT_EQ(TokensOf(*batch, 2), Alone({5, 5}, 6));
  EXPECT_THAT(FormatError(batch->Tokens(1).status()), HasSubstr("there is no sequence 1"));
  EXPECT_THAT(FormatError(batch->Remove(1)), HasSubstr("there is no sequence 1"));
}

TEST(Batches, SayBeforehandHowManyTokensFitIntoTheMemory) {
  auto session = DecoderSession(CpuRuntime(), kMaskedDecoder);
  auto batch = Batch::Create(session, DecoderConfig(false), {.cache_bytes = 100 * 64});  // 64 bytes for each token
  ASSERT_TRUE(batch.ok());
  ASSERT_TRUE((*batch)->Add(std::vector<int64_t>{1, 2}, {}, 38).ok());  // 40 tokens
  const absl::Status status = (*batch)->Add(std::vector<int64_t>{1}, {}, 50).status();
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(FormatError(status), HasSubstr("beside 1 sequences of up to 40 tokens, 50 tokens fit"));
  EXPECT_TRUE((*batch)->Add(std::vector<int64_t>{1}, {}, 49).ok());
  EXPECT_THAT(FormatError((*batch)->Add(std::vector<int64_t>{1}, {}, 1).status()), HasSubstr("0 tokens fit"));
}

TEST(Batches, RefuseWhatAGeneratorRefuses) {
  auto batch = *Batch::Create(DecoderSession(CpuRuntime(), kMaskedDecoder), DecoderConfig(false), {.max_length = 10});
  const auto error = [&](const std::vector<int64_t>& prompt, SamplingOptions sampling = {}) {
    return FormatError(batch->Add(prompt, sampling, 0).status());
  };
  EXPECT_THAT(error({}), HasSubstr("the sequence has no tokens"));
  EXPECT_THAT(error({20}), HasSubstr("the ids 0 to 19"));
  EXPECT_THAT(error(std::vector<int64_t>(10, 1)), HasSubstr("so 9 fit"));
  EXPECT_THAT(error({1}, {.top_p = 2}), HasSubstr("top_p is 2"));
  EXPECT_THAT(*batch->Step(), IsEmpty());
}

}  // namespace
}  // namespace mge
