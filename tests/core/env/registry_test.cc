// SPDX-License-Identifier: Apache-2.0
#include "core/env/registry.h"

#include <thread>

#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Registry, ReturnsDefaultsIfNothingIsSet) {
  auto snapshot = MustCreate({})->snapshot();
  EXPECT_EQ(snapshot->Get<kDefaultDevice>(), "xpux");
  EXPECT_EQ(snapshot->Get<kThreads>(), 0);
  EXPECT_EQ(snapshot->Get<kEngineType>(), EngineType::kThreadedPerDevice);
  EXPECT_EQ(snapshot->Get<kCpuWorkers>(), 1);
  EXPECT_EQ(snapshot->Get<kCpuPriorityWorkers>(), 4);
  EXPECT_EQ(snapshot->Get<kSelectStrategy>(), Strategy::kHeuristic);
  EXPECT_EQ(snapshot->Get<kPlanCacheCount>(), INT64_MAX);
  EXPECT_EQ(snapshot->Get<kPlanCacheBytes>(), ByteCount{256 << 20});
  EXPECT_EQ(snapshot->Get<kRunTimeout>(), Seconds(0));
  EXPECT_EQ(snapshot->Get<kMemoryLargeRound>(), ByteCount{2 << 20});
  EXPECT_TRUE(snapshot->Get<kPlanInplace>());
  EXPECT_THAT(snapshot->Get<kPlanSkip>(), IsEmpty());
  EXPECT_FALSE(snapshot->Get<kMemoryLimit>().For("cpu0").has_value());
  EXPECT_FALSE(snapshot->IsSet<kThreads>());
}

TEST(Registry, PrefersCallThenCommandLineThenEnvironmentThenFilesThenDefault) {
  ScratchDir dir;
  std::string first = dir.Write("first.toml", "threads = 1\n");
  std::string second = dir.Write("second.toml", "\nthreads = 2\n");
  Sources sources;
  auto now = [&] {
    SettingInfo info = InfoOf(*MustCreate(sources), "threads");
    return info.value + " " + info.origin;
  };
  EXPECT_EQ(now(), "0 default");
  sources.config_files = {first};
  EXPECT_EQ(now(), "1 " + first + ":1");
  sources.config_files = {first, second};
  EXPECT_EQ(now(), "2 " + second + ":2");
  sources.environment.variables = {{"MGE_THREADS", "3"}};
  EXPECT_EQ(now(), "3 environment MGE_THREADS");
  sources.command_line = {{"threads", "4"}};
  EXPECT_EQ(now(), "4 command line --set threads=4");
  sources.command_line.push_back({"MGE_THREADS", "5", "--threads 5"});
  EXPECT_EQ(now(), "5 command line --threads 5");
  sources.call = {{"threads", "6"}};
  EXPECT_EQ(now(), "6 call");
}

TEST(Registry, ShowsTheNextSourceAfterACallIsReset) {
  auto registry = MustCreate(FromEnvironment({{"MGE_SEED", "3"}}));
  ASSERT_TRUE(registry->Set("seed", "4").ok());
  EXPECT_EQ(registry->snapshot()->Get<kSeed>(), 4);
  ASSERT_TRUE(registry->Set("MGE_SEED", "").ok());
  EXPECT_EQ(registry->snapshot()->Get<kSeed>(), 3);
  EXPECT_EQ(registry->snapshot()->OriginOf<kSeed>().Describe(), "environment MGE_SEED");
}

TEST(Registry, ChecksAValueEvenIfAnotherSourceOverridesIt) {
  EXPECT_THAT(ErrorOf({.call = {{"threads", "1"}}, .environment = {{{"MGE_THREADS", "two"}}}}), HasSubstr("MGE_THREADS"));
}

TEST(Registry, NamesVariableValueAndAllowedValuesInAnError) {
  auto registry = Registry::Create(FromEnvironment({{"MGE_THREADS", "two"}}));
  EXPECT_EQ(FormatError(registry.status()),
            "error[E0202] MGE_THREADS = \"two\" is not a whole number\n"
            "  what:  allowed: 0..1024\n"
            "  where: environment MGE_THREADS\n"
            "  fix:   use an allowed value, or remove the setting to use the default, which is 0");
  EXPECT_EQ(KindOf(registry.status()), ErrorKind::kUsage);
}

// Texts that are not a number or not a size.
TEST(Registry, NeverFallsBackToTheDefaultForABadValue) {
  for (std::string_view value : {"1e99", "-1", "two", "0x2", "2 3", "1025"}) {
    EXPECT_THAT(ErrorOf(FromEnvironment({{"MGE_THREADS", std::string(value)}})), HasSubstr("E0202")) << value;
  }
  EXPECT_THAT(ErrorOf(FromEnvironment({{"MGE_MEMORY_LIMIT", "10QB"}})), AllOf(HasSubstr("E0202"), HasSubstr("10QB")));
  EXPECT_THAT(
      ErrorOf(FromEnvironment({{"MXNET_ENGINE_TYPE", "FastEngine"}})),
      AllOf(
          HasSubstr("MXNET_ENGINE_TYPE = \"FastEngine\" is not one of NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice"),
          HasSubstr("environment MXNET_ENGINE_TYPE")));
  EXPECT_THAT(ErrorOf(FromEnvironment({{"MGE_PLUGIN_PATH", "relative/dir"}})), HasSubstr("relative/dir"));
}

TEST(Registry, AcceptsAGoodConfigurationAfterABadOne) {
  EXPECT_NE(ErrorOf(FromEnvironment({{"MGE_THREADS", "two"}})), "ok");
  EXPECT_EQ(ErrorOf(FromEnvironment({{"MGE_THREADS", "2"}})), "ok");
}

TEST(Registry, PrefersTheCanonicalVariableToItsAliasesAndWarns) {
  LogLines log;
  auto registry =
      MustCreate(FromEnvironment({{"MXNET_ENGINE_TYPE", "NaiveEngine"}, {"MGE_ENGINE_TYPE", "threaded"}}), log.logger());
  EXPECT_EQ(registry->snapshot()->Get<kEngineType>(), EngineType::kThreaded);
  EXPECT_EQ(registry->snapshot()->OriginOf<kEngineType>().Describe(), "environment MGE_ENGINE_TYPE");
  EXPECT_THAT(log.lines, ElementsAre("warning: MGE_ENGINE_TYPE and MXNET_ENGINE_TYPE set engine.type differently; "
                                     "MGE_ENGINE_TYPE wins"));
}

TEST(Registry, DoesNotWarnIfTwoVariablesAgree) {
  LogLines log;
  MustCreate(FromEnvironment({{"MXNET_ENGINE_TYPE", "NaiveEngine"}, {"MGE_ENGINE_TYPE", "naive"}}), log.logger());
  EXPECT_THAT(log.lines, IsEmpty());
}

// The page of Ascend GE forbids the variable beside the option. Equal values do no harm.
TEST(Registry, RefusesAnOptionThatContradictsAVariableIfTheSettingHasOneSource) {
  const Sources variable = FromEnvironment({{"GE_USE_STATIC_MEMORY", "2"}});
  Sources both = variable;
  both.command_line = {{"static_memory_policy", "0"}};
  EXPECT_THAT(ErrorOf(both), AllOf(HasSubstr("the variable GE_USE_STATIC_MEMORY and the option static_memory_policy"),
                                   HasSubstr("GE_USE_STATIC_MEMORY is 2, static_memory_policy is 0")));
  both.command_line = {{"static_memory_policy", "1"}};
  EXPECT_EQ(InfoOf(*MustCreate(both), "memory.static_policy").value, "static");
  both = variable;
  both.call = {{"ge.exec.staticMemoryPolicy", "off"}};
  EXPECT_THAT(ErrorOf(both), HasSubstr("the option ge.exec.staticMemoryPolicy"));

  auto registry = MustCreate(variable);
  const std::vector<Assignment> same = {{"static_memory_policy", "static"}}, other = {{"static_memory_policy", "0"}};
  EXPECT_TRUE(registry->SnapshotWith(same).ok());
  EXPECT_EQ(ErrorId(registry->SnapshotWith(other).status()), errors::kBadSetting.id);
  EXPECT_EQ(ErrorId(registry->Set("memory.static_policy", "off")), errors::kBadSetting.id);
  EXPECT_EQ(InfoOf(*registry, "memory.static_policy").origin, "environment GE_USE_STATIC_MEMORY");
}

TEST(Registry, ExpandsTildeInPathsOfEverySource) {
  ScratchDir dir;
  const std::string file = dir.Write("mge.toml", "[select]\ncache_dir = \"~/config\"\n");
  auto cache_dir = [&](Sources sources) {
    sources.environment.variables.emplace_back("HOME", dir.path());
    return MustCreate(std::move(sources))->snapshot()->Get<kSelectCacheDir>();
  };
  EXPECT_EQ(cache_dir({.environment = {{{"MGE_FASTRUN_CACHE_DIR", "~/variable"}}}}), dir.path() + "/variable");
  EXPECT_EQ(cache_dir({.command_line = {{"select.cache_dir", "~/option"}}}), dir.path() + "/option");
  EXPECT_EQ(cache_dir({.call = {{"select.cache_dir", "~"}}}), dir.path());
  EXPECT_EQ(cache_dir({.config_files = {file}}), dir.path() + "/config");
  EXPECT_EQ(cache_dir({.config_files = {"~/mge.toml"}}), dir.path() + "/config");
  EXPECT_THAT(ErrorOf({.command_line = {{"select.cache_dir", "~nobody/x"}}}), HasSubstr("names another user's folder"));
}

TEST(Registry, ReportsAnUnknownVariableOnceWithTheNearestName) {
  LogLines log;
  auto registry =
      MustCreate(FromEnvironment({{"MGE_DEFUALT_DEVICE", "secret"}, {"MXNET_NO_SUCH_THING_AT_ALL", "1"}}), log.logger());
  ASSERT_TRUE(registry->CheckUnknown().ok());
  ASSERT_TRUE(registry->CheckUnknown().ok());
  EXPECT_THAT(log.lines,
              ElementsAre("warning: the variable \"MGE_DEFUALT_DEVICE\" is unknown and has no effect. Did you mean "
                          "\"MGE_DEFAULT_DEVICE\"?",
                          "warning: the variable \"MXNET_NO_SUCH_THING_AT_ALL\" is unknown and has no effect."));
  EXPECT_EQ(registry->snapshot()->Get<kDefaultDevice>(), "xpux");
}

TEST(Registry, ReportsMisspeltNamesOfEverySystem) {
  LogLines log;
  auto registry = MustCreate(FromEnvironment({{"GE_USE_STATIC_MEMROY", "2"}}), log.logger());
  ASSERT_TRUE(registry->CheckUnknown().ok());
  EXPECT_THAT(log.lines, ElementsAre("warning: the variable \"GE_USE_STATIC_MEMROY\" is unknown and has no effect. Did you "
                                     "mean \"GE_USE_STATIC_MEMORY\"?"));
  auto strict = Registry::Create(FromEnvironment({{"GE_USE_STATIC_MEMROY", "2"}, {"MGE_ENV_STRICT", "1"}}), log.logger());
  EXPECT_EQ(ErrorId((*strict)->CheckUnknown()), errors::kUnknownSetting.id);
}

TEST(Registry, NamesTheSpellingsOfThePageInAnError) {
  auto wrong = Registry::Create(FromEnvironment({{"MXNET_ENGINE_TYPE", "NaiveEngin"}}), Logger(LogLevel::kSilent));
  EXPECT_THAT(FormatError(wrong.status()), HasSubstr("NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice"));
  EXPECT_THAT(PartsOf(wrong.status()).fix, HasSubstr("the default, which is ThreadedEnginePerDevice"));
  wrong = Registry::Create(FromEnvironment({{"GE_USE_STATIC_MEMORY", "5"}}), Logger(LogLevel::kSilent));
  EXPECT_THAT(FormatError(wrong.status()), HasSubstr("0, 1, 2, 3, 4"));
  wrong = Registry::Create(FromEnvironment({{"MGE_ENGINE_TYPE", "NaiveEngin"}}), Logger(LogLevel::kSilent));
  EXPECT_THAT(FormatError(wrong.status()), HasSubstr("naive, threaded, threaded_per_device"));
}

TEST(Registry, RefusesAnUnknownVariableInStrictMode) {
  auto registry = MustCreate(FromEnvironment({{"MGE_ENV_STRICT", "1"}, {"MGE_DEFUALT_DEVICE", "secret"}}));
  std::string text = FormatError(registry->CheckUnknown());
  EXPECT_THAT(text, AllOf(HasSubstr("E0203"), HasSubstr("MGE_DEFUALT_DEVICE"), HasSubstr("MGE_DEFAULT_DEVICE"),
                          Not(HasSubstr("secret"))));
}

TEST(Registry, IgnoresVariablesOfOtherPrograms) {
  LogLines log;
  auto registry = MustCreate(FromEnvironment({{"PATH", "/bin"},
                                              {"MGE_TEST_DATA", "/data"},
                                              {"MGE_UNKNOWN_BUT_EMPTY", ""},
                                              {"NCCL_DEBUG", "INFO"},
                                              {"MGE_ENV_STRICT", "1"}}),
                             log.logger());
  EXPECT_TRUE(registry->CheckUnknown().ok());
  EXPECT_THAT(log.lines, IsEmpty());
}

TEST(Registry, RefusesUnknownNamesOfCallsAndTheCommandLine) {
  auto by_call = MustCreate({.call = {{"threds", "2"}}});
  EXPECT_THAT(FormatError(by_call->CheckUnknown()),
              AllOf(HasSubstr("E0203"), HasSubstr("\"threds\""), HasSubstr("Did you mean \"threads\"?")));
  auto by_option = MustCreate({.command_line = {{"MGE_THREDS", "2"}}});
  EXPECT_THAT(FormatError(by_option->CheckUnknown()), HasSubstr("Did you mean \"MGE_THREADS\"?"));
  EXPECT_THAT(FormatError(MustCreate({})->Set("engine.tpye", "naive")), HasSubstr("Did you mean \"engine.type\"?"));
}

TEST(Registry, NamesTheSuccessorOfARemovedName) {
  EXPECT_THAT(FormatError(MustCreate({})->Set("plan.num_temp", "2")),
              AllOf(HasSubstr("E0203"), HasSubstr("It is now named \"plan.workspaces\".")));
  auto by_option = MustCreate({.command_line = {{"MGE_SELECT_FREEZE", "a.toml"}}});
  EXPECT_THAT(FormatError(by_option->CheckUnknown()), HasSubstr("It is now named \"MGE_SELECT_RECORD\"."));
  EXPECT_THAT(FormatError(MustCreate({})->TextOf("select.frozen").status()), HasSubstr("\"select.replay\""));
  LogLines log;
  auto by_variable = MustCreate(FromEnvironment({{"MGE_STRICT_ENV", "1"}, {"MGE_RUN_TIMEOUT", "2"}}), log.logger());
  ASSERT_TRUE(by_variable->CheckUnknown().ok());
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("\"MGE_STRICT_ENV\" is unknown and has no effect. It is now named "
                                               "\"MGE_ENV_STRICT\"."),
                                     HasSubstr("It is now named \"MGE_RUN_TIMEOUT_SECONDS\".")));
}

TEST(Registry, EscapesControlCharactersInNames) {
  LogLines log;
  auto registry = MustCreate(FromEnvironment({{"MGE_\033[31mRED", "1"}}), log.logger());
  ASSERT_TRUE(registry->CheckUnknown().ok());
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], Not(HasSubstr("\033")));
}

TEST(Registry, RefusesToChangeAFirstSetSettingAfterItWasRead) {
  auto registry = MustCreate({});
  EXPECT_TRUE(registry->Set("threads", "2").ok());
  registry->MarkRead();
  absl::Status late = registry->Set("MGE_THREADS", "3");
  EXPECT_EQ(ErrorId(late), errors::kSettingTooLate.id);
  EXPECT_THAT(FormatError(late), HasSubstr("before the runtime is created"));
  EXPECT_EQ(registry->snapshot()->Get<kThreads>(), 2);
  EXPECT_THAT(FormatError(registry->Set("default_device", "cpu0")), HasSubstr("call set_default_device"));
  EXPECT_THAT(FormatError(registry->Set("select.strategy", "profile")), HasSubstr("call set_execution_strategy"));
}

TEST(Registry, ChangesAFirstSetSettingThroughItsFunction) {
  auto registry = MustCreate({});
  registry->MarkRead();
  ASSERT_TRUE(registry->SetThrough("set_default_device", "default_device", "cpu0").ok());
  EXPECT_EQ(registry->snapshot()->Get<kDefaultDevice>(), "cpu0");
  EXPECT_EQ(InfoOf(*registry, "default_device").origin, "call set_default_device");
  EXPECT_EQ(ErrorId(registry->SetThrough("set_execution_strategy", "select.strategy", "quickest")), errors::kBadSetting.id);
}

TEST(Registry, NeverChangesASnapshot) {
  auto registry = MustCreate({});
  auto before = registry->snapshot();
  ASSERT_TRUE(registry->Set("plan.inplace", "0").ok());
  EXPECT_TRUE(before->Get<kPlanInplace>());
  EXPECT_FALSE(registry->snapshot()->Get<kPlanInplace>());
  registry.reset();
  EXPECT_EQ(before->Get<kDefaultDevice>(), "xpux");
}

TEST(Registry, ChangesNothingOnAnError) {
  auto registry = MustCreate(FromEnvironment({{"MGE_ENV_STRICT", "1"}}));
  ASSERT_TRUE(registry->Set("plan.cache_count", "4").ok());
  EXPECT_EQ(ErrorId(registry->Set("plan.cache_count", "-1")), errors::kBadSetting.id);
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 4);
}

TEST(Registry, MayExistTwiceInOneProcess) {
  LogLines first_log, second_log;
  auto first = MustCreate(FromEnvironment({{"MGE_THREADS", "1"}, {"MGE_TYPO", "1"}}), first_log.logger());
  auto second = MustCreate(FromEnvironment({{"MGE_THREADS", "2"}, {"MGE_TYPO", "1"}}), second_log.logger());
  first->MarkRead();
  ASSERT_TRUE(second->Set("threads", "3").ok());
  ASSERT_TRUE(first->CheckUnknown().ok());
  ASSERT_TRUE(second->CheckUnknown().ok());
  EXPECT_EQ(first->snapshot()->Get<kThreads>(), 1);
  EXPECT_EQ(second->snapshot()->Get<kThreads>(), 3);
  EXPECT_EQ(first_log.lines.size(), 1u);
  EXPECT_EQ(second_log.lines.size(), 1u);
}

TEST(Registry, MayBeReadWhileItIsChanged) {
  auto registry = MustCreate({});
  std::thread writer([&] {
    for (int i = 1; i <= 100; ++i) ASSERT_TRUE(registry->Set("plan.cache_count", std::to_string(i)).ok());
  });
  int64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    int64_t now = registry->snapshot()->Get<kPlanCacheCount>();
    if (now != 0) {  // 0 is the default, before the first change
      EXPECT_GE(now, last);
      last = now;
    }
  }
  writer.join();
  EXPECT_EQ(registry->snapshot()->Get<kPlanCacheCount>(), 100);
}

TEST(Registry, GivesEqualKeysForEqualSettings) {
  auto by_environment = MustCreate(FromEnvironment({{"MXNET_EXEC_ENABLE_INPLACE", "0"}, {"MGE_SEED", "7"}}));
  auto by_call = MustCreate({});
  ASSERT_TRUE(by_call->Set("seed", "7").ok());
  ASSERT_TRUE(by_call->Set("plan.inplace", "false").ok());
  EXPECT_EQ(by_environment->snapshot()->DynamicKey(), by_call->snapshot()->DynamicKey());
  EXPECT_NE(by_call->snapshot()->DynamicKey(), MustCreate({})->snapshot()->DynamicKey());
}

TEST(Registry, GivesDifferentKeysForDifferentSettings) {
  auto a = MustCreate({.call = {{"plan.skip", "a,b"}}});
  auto b = MustCreate({.call = {{"plan.skip", "a"}, {"seed", "1"}}});
  EXPECT_NE(a->snapshot()->DynamicKey(), b->snapshot()->DynamicKey());
}

TEST(Registry, LetsTheLogLevelOverrideWin) {
  auto level = [](Variables variables) {
    return MustCreate(FromEnvironment(std::move(variables)), Logger(LogLevel::kInfo))->logger().level();
  };
  EXPECT_EQ(level({}), LogLevel::kInfo);  // the level of the logger itself
  EXPECT_EQ(level({{"MEGENGINE_LOGGING_LEVEL", "DEBUG"}}), LogLevel::kDebug);
  EXPECT_EQ(level({{"MGE_LOG_LEVEL", "error"}}), LogLevel::kError);
  EXPECT_EQ(level({{"MGE_LOG_LEVEL", "debug"}, {"RUNTIME_OVERRIDE_LOG_LEVEL", "4"}}), LogLevel::kSilent);
}

TEST(Registry, ListsEveryRowOfTheCore) {
  std::vector<SettingInfo> list = MustCreate({})->List();
  ASSERT_EQ(list.size(), kSettings.size());
  SettingInfo threads = InfoOf(*MustCreate({}), "engine.type");
  EXPECT_EQ(threads.variable, "MGE_ENGINE_TYPE");
  EXPECT_THAT(threads.aliases, ElementsAre("MXNET_ENGINE_TYPE"));
  EXPECT_EQ(threads.type, "choice");
  EXPECT_EQ(threads.default_value, "threaded_per_device");
  EXPECT_EQ(threads.lifecycle, "first-set");
  EXPECT_EQ(threads.owner, "core");
}

}  // namespace
}  // namespace mge
