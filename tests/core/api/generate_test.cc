// SPDX-License-Identifier: Apache-2.0
// Generators through the C and C++ API.
#include "mge/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "tests/core/api/api_models.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GeneratorApi : public testing::Test {
 protected:
  void SetUp() override {
    mge::api_models::WriteDecoder(folder_);
    mge::RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    auto runtime = mge::Runtime::Create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().text();
    runtime_ = *std::move(runtime);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  mge::Generator Load(mge::GeneratorOptions options = {}) {
    options.device = "cpu0";
    auto generator = mge::Generator::Load(runtime_, folder_, options);
    EXPECT_TRUE(generator.ok()) << generator.status().text();
    return *std::move(generator);
  }

  const std::string folder_ = testing::TempDir() + "generator_api_" + std::to_string(getpid());
  mge::Runtime runtime_;
};

TEST_F(GeneratorApi, ContinuesAPromptUntilTheEndToken) {
  const mge::Generator generator = Load();
  ASSERT_TRUE(generator.Append({5, 1}).ok());
  int end = MGE_END_NONE;
  while (end == MGE_END_NONE) {
    const auto next = generator.Next();
    ASSERT_TRUE(next.ok()) << next.status().text();
    end = next->end;
  }
  EXPECT_EQ(end, MGE_END_TOKEN);
  EXPECT_THAT(generator.tokens(), ElementsAre(5, 1, 3, 9, 7, 2, 6));
  ASSERT_TRUE(generator.Rewind(4).ok());
  EXPECT_EQ(generator.Next()->id, 7);
}

TEST_F(GeneratorApi, DescribesItself) {
  const mge::Generator generator = Load({.settings = {"plan.ranges=off"}, .max_length = 9});
  const auto facts = generator.Describe();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->vocabulary, 20);
  EXPECT_EQ(facts->max_length, 9);
  EXPECT_EQ(facts->cache_bytes_per_token, 80u);
  ASSERT_EQ(facts->end_token_count, 1u);
  EXPECT_EQ(facts->end_tokens[0], 6);
  EXPECT_STREQ(facts->device, "cpu0");
}

TEST_F(GeneratorApi, SamplesWithTheGivenOptions) {
  const mge::Generator generator = Load();
  EXPECT_EQ(generator.sampling()->temperature, 0);
  mge::Sampling sampling;
  sampling.temperature = 100;
  sampling.seed = 5;
  ASSERT_TRUE(generator.SetSampling(sampling).ok());
  EXPECT_EQ(generator.sampling()->seed, 5u);
  ASSERT_TRUE(generator.Append({1}).ok());
  std::vector<int64_t> first;
  for (int i = 0; i < 8; ++i) first.push_back(generator.Next()->id);
  EXPECT_NE(first[0] * 100 + first[1], 309);  // nearly all tokens are equally probable
  ASSERT_TRUE(generator.Rewind(1).ok());
  for (const int64_t id : first) EXPECT_EQ(generator.Next()->id, id);
  sampling.top_p = 0;
  EXPECT_THAT(std::string(generator.SetSampling(sampling).text()), HasSubstr("top_p is 0"));
}

TEST_F(GeneratorApi, LetsTheCallerForbidTokens) {
  const mge::Generator generator = Load();
  ASSERT_TRUE(generator.Append({1}).ok());
  const auto logits = generator.Logits();
  ASSERT_TRUE(logits.ok());
  ASSERT_EQ(logits->size(), 20u);
  (*logits)[3] = -INFINITY;
  EXPECT_EQ(generator.Next()->id, 0);  // the first of the others
}

TEST_F(GeneratorApi, CanBeCancelledAndGoesOn) {
  const mge::Generator generator = Load();
  ASSERT_TRUE(generator.Append({1}).ok());
  auto control = mge::RunControl::Create();
  control->Cancel();
  EXPECT_EQ(generator.Next(&*control).status().id(), 13001);
  EXPECT_EQ(generator.Next()->id, 3);
}

TEST_F(GeneratorApi, NamesWrongArguments) {
  mge_generator* out = nullptr;
  mge_status* status = mge_generator_load(runtime_.get(), nullptr, nullptr, &out);
  EXPECT_THAT(std::string(mge_status_text(status)), HasSubstr("folder"));
  mge_status_release(status);
  const mge::Generator generator = Load({.max_length = 3});
  EXPECT_EQ(generator.Append({1, 2, 3, 4}).id(), 310);
  EXPECT_EQ(generator.Append({20}).id(), 309);
  EXPECT_EQ(generator.Rewind(1).id(), 207);
  EXPECT_EQ(generator.Next().status().id(), 207);
  EXPECT_EQ(mge::Generator::Load(runtime_, folder_ + "/none").status().id(), 701);
  mge::GeneratorOptions options;
  options.max_length = 65;
  EXPECT_THAT(std::string(mge::Generator::Load(runtime_, folder_, options).status().text()), HasSubstr("64 tokens"));
}

}  // namespace
