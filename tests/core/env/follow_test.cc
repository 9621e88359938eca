// SPDX-License-Identifier: Apache-2.0
// A process that changes its variables after a registry was created.
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FollowedEnvironment : public testing::Test {
 protected:
  ~FollowedEnvironment() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Put(const std::string& name, const std::string& text) {
    set_.push_back(name);
    setenv(name.c_str(), text.c_str(), 1);
  }
  std::unique_ptr<Registry> Follow(Sources sources = {}) {
    sources.environment = CaptureEnvironment();
    sources.follows_environment = true;
    return MustCreate(std::move(sources), log_.logger());
  }

  LogLines log_;

 private:
  std::vector<std::string> set_;
};

TEST_F(FollowedEnvironment, GivesDynamicSettingsTheirNewValuesAndOrigins) {
  const auto registry = Follow();
  registry->MarkRead();
  Put("MGE_PLAN_CACHE_COUNT", "7");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 7);
  EXPECT_THAT(InfoOf(*registry, "plan.cache_count").origin, HasSubstr("MGE_PLAN_CACHE_COUNT"));
  Put("MGE_PLAN_CACHE_COUNT", "9");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 9);
  unsetenv("MGE_PLAN_CACHE_COUNT");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), kPlanCacheCount.default_value);
}

TEST_F(FollowedEnvironment, TakesAForeignName) {
  const auto registry = Follow();
  registry->MarkRead();
  Put("MXNET_EXEC_ENABLE_INPLACE", "0");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_FALSE(registry->snapshot()->Get<kPlanInplace>());
}

TEST_F(FollowedEnvironment, LeavesFirstSetSettingsAndThoseSetByCall) {
  const auto registry = Follow({.call = {{"plan.cache_count", "3"}}});
  registry->MarkRead();
  Put("MGE_ENGINE_TYPE", "naive");
  Put("MGE_PLAN_CACHE_COUNT", "7");
  const auto before = registry->snapshot()->Get<kEngineType>();
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_EQ(registry->snapshot()->Get<kEngineType>(), before);
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 3);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(FollowedEnvironment, RefusesABadValueUntilItIsMended) {
  const auto registry = Follow();
  registry->MarkRead();
  Put("MGE_PLAN_CACHE_COUNT", "7");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  Put("MGE_PLAN_CACHE_COUNT", "-1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(FormatError(registry->FollowEnvironment()), HasSubstr("MGE_PLAN_CACHE_COUNT = \"-1\""));
    EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 7);
  }
  Put("MGE_PLAN_CACHE_COUNT", "8");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 8);
}

TEST_F(FollowedEnvironment, ReportsANewUnknownNameOnce) {
  const auto registry = Follow();
  registry->MarkRead();
  Put("MGE_PLAN_CACHE_COUNTS", "7");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  Put("MGE_PLAN_CACHE_COUNT", "7");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("MGE_PLAN_CACHE_COUNTS")));
}

TEST_F(FollowedEnvironment, TellsABackend) {
  const auto registry = Follow();
  const auto added = registry->RegisterBackend("demo", {{.key = "demo.level",
                                                         .type = SettingType::kInt,
                                                         .default_value = "1",
                                                         .min = "0",
                                                         .max = "9",
                                                         .lifecycle = Lifecycle::kDynamic,
                                                         .doc = "Level of detail."}});
  ASSERT_TRUE(added.ok()) << FormatError(added.status());
  registry->MarkRead();
  std::vector<std::string> told;
  registry->set_tell_backend([&](std::string_view backend, std::string_view key, std::string value) {
    told.push_back(std::string(backend) + " " + std::string(key) + "=" + value);
  });
  Put("MGE_DEMO_LEVEL", "5");
  ASSERT_TRUE(registry->FollowEnvironment().ok());
  EXPECT_THAT(told, ElementsAre("demo demo.level=5"));
}

TEST(Registry, DoesNotFollowTheProcessIfItsEnvironmentWasGiven) {
  const auto registry = MustCreate(FromEnvironment({{"MGE_PLAN_CACHE_COUNT", "5"}}));
  setenv("MGE_PLAN_CACHE_COUNT", "7", 1);
  EXPECT_TRUE(registry->FollowEnvironment().ok());
  unsetenv("MGE_PLAN_CACHE_COUNT");
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 5);
}

}  // namespace
}  // namespace mge
