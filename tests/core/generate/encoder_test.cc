// SPDX-License-Identifier: Apache-2.0
// Models with an encoder: what it computes of a source steers the decoder.
#include "core/generate/encoder.h"

#include "core/base/errors.h"
#include "tests/core/generate/decoders.h"

namespace mge {
namespace {

using testing::HasSubstr;

// Hidden states of tokens, and the keys of a layer.
constexpr char kEncoder[] = R"(
input input_ids : int64[B,E]
input attention_mask : int64[B,E]
const table = float32[20,16]<0.5>
const w = float32[16,16]<0.5>
const axes = int64[1]<2>
h = Gather(table, input_ids) {axis=0}
m = Cast(attention_mask) {to=1}
column = Unsqueeze(m, axes)
encoder_hidden_states = Mul(h, column)
present_key_cross_0 = MatMul(h, w)
output encoder_hidden_states
output present_key_cross_0
)";

// A decoder that attends to the encoder's states and to its own tokens.
constexpr char kDecoder[] = R"(
input input_ids : int64[B,S]
input encoder_hidden_states : float32[B,E,16]
input encoder_attention_mask : int64[B,E]
input past_key_cross_0 : float32[B,E,16]
input past_key_self_0 : float32[B,1,N,16]
input past_value_self_0 : float32[B,1,N,16]
const table = float32[20,16]<0.5>
const head = float32[16,20]<0.5>
const axes = int64[2]<1,2>
x = Gather(table, input_ids) {axis=0}
own, present_key_self_0, present_value_self_0 = Attention(x, x, x, _, past_key_self_0, past_value_self_0) {is_causal=1,q_num_heads=1,kv_num_heads=1}
seen = Cast(encoder_attention_mask) {to=9}
mask = Unsqueeze(seen, axes)
other = Attention(x, past_key_cross_0, encoder_hidden_states, mask) {q_num_heads=1,kv_num_heads=1}
both = Add(own, other)
y = Sub(both, x)
logits = MatMul(y, head)
output logits
output present_key_self_0
output present_value_self_0
)";

GenerationConfig WithEncoder() {
  const auto config = ParseGenerationConfig(R"({"model": {"type": "t5", "vocab_size": 20, "context_length": 100,
      "encoder": {"filename": "encoder.onnx", "outputs": {"encoder_hidden_states": "encoder_hidden_states"}},
      "decoder": {"filename": "decoder.onnx", "num_key_value_heads": 1, "head_size": 16,
                  "inputs": {"past_key_names": "past_key_self_%d", "past_value_names": "past_value_self_%d"},
                  "outputs": {"present_key_names": "present_key_self_%d", "present_value_names": "present_value_self_%d"}}}})",
                                            Logger(LogLevel::kSilent));
  EXPECT_TRUE(config.ok()) << FormatError(config.status());
  return config.ok() ? *config : GenerationConfig();
}

class WithASource : public testing::Test {
 protected:
  std::unique_ptr<Generator> New() {
    auto runtime = CpuRuntime();
    auto generator =
        Generator::Create(DecoderSession(runtime, kDecoder), WithEncoder(), 0, DecoderSession(runtime, kEncoder));
    EXPECT_TRUE(generator.ok()) << FormatError(generator.status());
    return generator.ok() ? *std::move(generator) : nullptr;
  }
  static Tensor Ids(const std::vector<int64_t>& ids) {
    return Tensor::Of<int64_t>({1, static_cast<int64_t>(ids.size())}, ids);
  }
  // Returns 12 tokens behind token 1.
  static std::vector<int64_t> Translated(Generator& generator, const std::vector<int64_t>& source) {
    const absl::Status status = generator.SetSource(std::vector<NamedTensor>{{"input_ids", Ids(source)}});
    EXPECT_TRUE(status.ok()) << FormatError(status);
    EXPECT_TRUE(generator.Rewind(0).ok());
    EXPECT_TRUE(generator.Append(std::vector<int64_t>{1}).ok());
    return Continue(generator, 12);
  }
};

TEST_F(WithASource, TheTokensDependOnIt) {
  auto generator = New();
  ASSERT_TRUE(generator);
  const std::vector<int64_t> first = Translated(*generator, {3, 1, 4, 1, 5}), second = Translated(*generator, {9, 2});
  EXPECT_NE(first, second);
  EXPECT_EQ(Translated(*generator, {3, 1, 4, 1, 5}), first);
}

TEST_F(WithASource, TheTokensAreThoseOfWholeRuns) {
  auto generator = New();
  ASSERT_TRUE(generator);
  const std::vector<int64_t> tokens = Translated(*generator, {3, 1, 4});
  for (size_t n = 1; n + 1 < tokens.size(); n += 3) {
    auto whole = New();
    ASSERT_TRUE(whole->SetSource(std::vector<NamedTensor>{{"input_ids", Ids({3, 1, 4})}}).ok());
    ASSERT_TRUE(whole->Append({tokens.data(), n}).ok());
    EXPECT_EQ(whole->Next()->id, tokens[n]) << n;
  }
}

TEST_F(WithASource, AMaskHidesTokens) {
  auto generator = New();
  ASSERT_TRUE(generator);
  const std::vector<int64_t> expected = Translated(*generator, {3, 1});
  const std::vector<NamedTensor> source = {{"input_ids", Ids({3, 1, 7, 8})}, {"attention_mask", Ids({1, 1, 0, 0})}};
  ASSERT_TRUE(generator->SetSource(source).ok());
  ASSERT_TRUE(generator->Rewind(0).ok());
  ASSERT_TRUE(generator->Append(std::vector<int64_t>{1}).ok());
  EXPECT_EQ(Continue(*generator, 12), expected);
}

TEST_F(WithASource, ErrorsNameWhatIsMissing) {
  auto generator = New();
  ASSERT_TRUE(generator);
  ASSERT_TRUE(generator->Append(std::vector<int64_t>{1}).ok());
  EXPECT_THAT(FormatError(generator->Next().status()), HasSubstr("source that the model's encoder reads is not set"));
  EXPECT_THAT(FormatError(generator->SetSource({})), HasSubstr("the encoder's input 'input_ids' is not given"));
  EXPECT_THAT(FormatError(generator->SetSource(std::vector<NamedTensor>{{"ids", Ids({1})}})),
              HasSubstr("its inputs are input_ids, attention_mask"));
  auto plain = Make(DecoderSession(CpuRuntime(), kAttentionDecoder), DecoderConfig(true));
  EXPECT_THAT(FormatError(plain->SetSource({})), HasSubstr("the model has no encoder"));
}

TEST_F(WithASource, AnOutputThatIsMissingIsNamed) {
  GenerationConfig config = WithEncoder();
  config.encoder.links[1].output = "keys_%d";
  auto runtime = CpuRuntime();
  const auto generator = Generator::Create(DecoderSession(runtime, kDecoder), config, 0, DecoderSession(runtime, kEncoder));
  EXPECT_THAT(FormatError(generator.status()), HasSubstr("it has no output 'keys_0'"));
}

}  // namespace
}  // namespace mge
