// SPDX-License-Identifier: Apache-2.0
#include "core/generate/config.h"

#include <filesystem>
#include <fstream>

#include "core/base/errors.h"
#include "core/generate/generator.h"
#include "tests/core/generate/decoders.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Warnings {
  std::vector<std::string> texts;
  Logger logger() {
    return Logger(
        LogLevel::kWarning,
        [](void* state, LogLevel, std::string_view text) { static_cast<Warnings*>(state)->texts.emplace_back(text); }, this);
  }
};

GenerationConfig Parsed(std::string_view text) {
  Warnings warnings;
  const auto config = ParseGenerationConfig(text, warnings.logger());
  EXPECT_TRUE(config.ok()) << FormatError(config.status());
  EXPECT_THAT(warnings.texts, IsEmpty());
  return config.ok() ? *config : GenerationConfig();
}

std::string ErrorOf(std::string_view text) {
  return FormatError(ParseGenerationConfig(text, Logger(LogLevel::kSilent)).status());
}

TEST(GenerationConfigs, NameTheModelAndItsValues) {
  const GenerationConfig config = Parsed(R"({"model": {"type": "llama", "vocab_size": 32000, "context_length": 4096,
      "eos_token_id": [2, 7], "decoder": {"filename": "decoder.onnx", "num_key_value_heads": 4, "head_size": 64,
      "inputs": {"input_ids": "ids", "past_names": "past%d"}, "outputs": {"logits": "scores", "present_names": "present%d"}}},
      "search": {"max_length": 100, "past_present_share_buffer": true}})");
  EXPECT_EQ(config.model, "decoder.onnx");
  EXPECT_EQ(config.vocabulary, 32000);
  EXPECT_EQ(config.context, 4096);
  EXPECT_EQ(config.max_length, 100);
  EXPECT_THAT(config.end_tokens, ElementsAre(2, 7));
  EXPECT_EQ(config.input_ids, "ids");
  EXPECT_EQ(config.logits, "scores");
  EXPECT_TRUE(config.shared_cache);
  ASSERT_GE(config.caches.size(), 3u);
  EXPECT_EQ(config.caches[0].past, "past_key_values.%d.key");  // the format's default
  EXPECT_EQ(config.caches[2].past, "past%d");
  EXPECT_EQ(config.caches[2].present, "present%d");
}

TEST(GenerationConfigs, ChooseTheMostProbableTokenUnlessTheySample) {
  EXPECT_EQ(Parsed(R"({"model": {"decoder": {}}, "search": {"temperature": 0.7, "top_k": 5}})").sampling.temperature, 0);
  const SamplingOptions s =
      Parsed(
          R"({"model": {"decoder": {}}, "search": {"do_sample": true, "temperature": 0.7, "top_p": 0.9, "random_seed": 4}})")
          .sampling;
  EXPECT_EQ(s.temperature, 0.7);
  EXPECT_EQ(s.top_k, 50);
  EXPECT_EQ(s.top_p, 0.9);
  EXPECT_EQ(s.seed, 4u);
}

TEST(GenerationConfigs, WithUnknownKeysAreOneWarningWithTheNearestNames) {
  Warnings warnings;
  const auto config = ParseGenerationConfig(
      R"({"model": {"vocab_sizes": 3, "decoder": {"inputs": {"past_key_name": "x"}}}, "search": {"zzz": 1}})",
      warnings.logger());
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_THAT(warnings.texts[0], HasSubstr("model.vocab_sizes (did you mean vocab_size?)"));
  EXPECT_THAT(warnings.texts[0], HasSubstr("model.decoder.inputs.past_key_name (did you mean past_key_names?)"));
  EXPECT_THAT(warnings.texts[0], HasSubstr("search.zzz"));
}

TEST(GenerationConfigs, ThatAskForBeamsAreAWarning) {
  Warnings warnings;
  ASSERT_TRUE(ParseGenerationConfig(R"({"model": {"decoder": {}}, "search": {"num_beams": 4}})", warnings.logger()).ok());
  ASSERT_EQ(warnings.texts.size(), 1u);
  EXPECT_THAT(warnings.texts[0], HasSubstr("search.num_beams = 4 (the value 1 is used)"));
}

TEST(GenerationConfigs, OfOtherKindsOfModelsAreRefusedByName) {
  const std::pair<const char*, const char*> kinds[] = {
      {R"({"model": {"type": "marian-ssru", "decoder": {}}})", "a recurrent decoder"},
      {R"({"model": {"decoder": {}, "vision": {}}})", "a model of images"},
      {R"({"model": {"decoder": {}, "speech": {}}})", "a model of speech"},
      {R"({"model": {"decoder": {"pipeline": []}}})", "a pipeline of several models"}};
  for (const auto& [text, kind] : kinds) {
    EXPECT_THAT(ErrorOf(text), testing::AllOf(HasSubstr("E0403"), HasSubstr(kind))) << text;
  }
}

TEST(GenerationConfigs, ThatAreMalformedAreErrorsThatNameTheKey) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {"{}", "model.decoder is missing"},
      {R"({"model": 3})", "model is not an object"},
      {R"({"model": {"decoder": {"filename": 3}}})", "model.decoder.filename is not a text"},
      {R"({"model": {"vocab_size": -3, "decoder": {}}})", "model.vocab_size is -3"},
      {R"({"model": {"vocab_size": 1e3, "decoder": {}}})", "model.vocab_size is not a whole number"},
      {R"({"model": {"eos_token_id": "x", "decoder": {}}})", "model.eos_token_id is not a token id"},
      {R"({"model": {"decoder": {}}, "search": {"do_sample": true, "temperature": -1}})", "temperature is -1"}};
  for (const auto& [text, error] : wrong) EXPECT_THAT(ErrorOf(text), HasSubstr(error)) << text;
  EXPECT_THAT(ErrorOf(std::string(200, '[')), HasSubstr("nested too deeply"));
}

// A folder in the test's temporary directory.
class Folders : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(path_ + "/" + name) << text; }
  std::string LoadError() { return FormatError(Generator::Load(CpuRuntime(), path_, {.device = "cpu0"}).status()); }
  const std::string path_ = testing::TempDir() + "/generation_folder_" + std::to_string(getpid());
};

TEST_F(Folders, WithoutADescriptionAreRefused) {
  EXPECT_THAT(LoadError(), testing::AllOf(HasSubstr("E0701"), HasSubstr("genai_config.json"), HasSubstr(path_)));
}

TEST_F(Folders, WithoutTheirModelAreRefused) {
  Write("genai_config.json", R"({"model": {"context_length": 9, "decoder": {"filename": "gone.onnx"}}})");
  EXPECT_THAT(LoadError(), testing::AllOf(HasSubstr("E0701"), HasSubstr("gone.onnx")));
}

TEST_F(Folders, WithoutTheFileOfTheWeightsAreRefused) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  Write("genai_config.json", R"({"model": {"context_length": 9, "decoder": {"filename": "model.onnx"}}})");
  Write("model.onnx",
        ModelProto({.graph = GraphProto(
                        {.nodes = {NodeProto("Gather", {"table", "input_ids"}, {"logits"})},
                         .inputs = {ValueInfo("input_ids", DType::kI64, {"B", "S"})},
                         .outputs = {ValueInfo("logits", DType::kF32, {"B", "S", int64_t{20}})},
                         .initializers = {ExternalTensor("table", DType::kF32, {20, 20}, {{"location", "gone.data"}})}})}));
  EXPECT_THAT(LoadError(), testing::AllOf(HasSubstr("E0306"), HasSubstr("gone.data")));
}

TEST_F(Folders, CannotNameAModelOutsideOfThem) {
  Write("genai_config.json", R"({"model": {"context_length": 9, "decoder": {"filename": "../model.onnx"}}})");
  EXPECT_THAT(LoadError(), HasSubstr("'../model.onnx' is outside of the folder"));
}

}  // namespace
}  // namespace mge
