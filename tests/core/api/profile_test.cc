// SPDX-License-Identifier: Apache-2.0
// Profiles recorded through the public API.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mge/mge.hpp"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

using nlohmann::json;

class ApiProfile : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
    SessionOptions on_host;
    on_host.device = "host";
    Status loaded = Session::Load(runtime_, MGE_SOURCE_DIR "/packaging/digits/digits.onnx", on_host).MoveTo(session_);
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    std::vector<int64_t> dims;
    for (int64_t d : session_.input(0).dims()) dims.push_back(d < 0 ? 1 : d);
    ASSERT_TRUE(Tensor::Create(session_.input(0).dtype(), dims).MoveTo(input_).ok());
  }
  json Report(const Profile& profile, const std::string& format) {
    std::string text;
    Status s = profile.Report(format).MoveTo(text);
    EXPECT_TRUE(s.ok()) << s.text();
    return json::parse(text);
  }
  Runtime runtime_;
  Session session_;
  Tensor input_;
};

TEST_F(ApiProfile, CollectsTheRunsOfTheControlsThatItIsAttachedTo) {
  Profile profile = *Profile::Create();
  RunControl with = *RunControl::Create(), without = *RunControl::Create();
  with.SetProfile(&profile);
  std::vector<Tensor> outputs;
  for (RunControl* c : {&with, &without, &with}) ASSERT_TRUE(session_.Run({&input_}, outputs, {.control = c}).ok());
  json report = Report(profile, "mge.profile/1");
  EXPECT_EQ(report["schema"], "mge.profile/1");
  EXPECT_EQ(report["runs"], 2);
  EXPECT_FALSE(report["steps"].empty());
  EXPECT_FALSE(Report(profile, "trace")["traceEvents"].empty());
  with.SetProfile(nullptr);
  ASSERT_TRUE(session_.Run({&input_}, outputs, {.control = &with}).ok());
  EXPECT_EQ(Report(profile, "mge.profile/1")["runs"], 2);
  profile.Reset();
  EXPECT_EQ(Report(profile, "mge.profile/1")["runs"], 0);
}

TEST_F(ApiProfile, MayBeReleasedWhileAControlUsesIt) {
  RunControl control = *RunControl::Create();
  {
    const Profile profile = *Profile::Create();
    control.SetProfile(&profile);
  }
  std::vector<Tensor> outputs;
  EXPECT_TRUE(session_.Run({&input_}, outputs, {.control = &control}).ok());
}

TEST_F(ApiProfile, RefusesAFormatThatItDoesNotKnow) { EXPECT_FALSE(Profile::Create()->Report("mge.profile/9").ok()); }

}  // namespace
}  // namespace mge
