// SPDX-License-Identifier: Apache-2.0
// Configuration files: precedence, and errors for every kind of bad file. A file that tries to include another one is
// refused.
#include "core/env/config_file.h"

#include <sys/stat.h>

#include "fmt/format.h"
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConfigFile : public testing::Test {
 protected:
  // Returns the error of a runtime with loaded backends that is configured by this text.
  std::string ErrorOfText(std::string_view text) {
    auto registry = Registry::Create({.config_files = {dir_.Write("a.toml", text)}}, Logger(LogLevel::kSilent));
    absl::Status status = registry.status();
    if (status.ok()) status = (*registry)->CheckUnknown();
    if (!status.ok()) {
      EXPECT_EQ(KindOf(status), ErrorKind::kUsage);
      EXPECT_EQ(ErrorOf({.config_files = {dir_.Write("good.toml", "threads = 1")}}), "ok");
    }
    return status.ok() ? "ok" : FormatError(status);
  }
  ScratchDir dir_;
};

TEST_F(ConfigFile, MayUseTablesAndDottedKeys) {
  std::string path = dir_.Write("a.toml",
                                "threads = 2\n"
                                "engine.type = \"naive\"\n"
                                "[plan]\n"
                                "inplace = false\n"
                                "cache_count = 3  # few\n"
                                "skip = [\n  \"fold\",\n  \"cse\",\n]\n"
                                "[memory]\n"
                                "limit = \"cpu0=1GiB\"\n");
  auto registry = MustCreate({.config_files = {path}});
  ASSERT_TRUE(registry->CheckUnknown().ok());
  auto snapshot = registry->snapshot();
  EXPECT_EQ(snapshot->Get<kThreads>(), 2);
  EXPECT_EQ(snapshot->Get<kEngineType>(), EngineType::kNaive);
  EXPECT_FALSE(snapshot->Get<kPlanInplace>());
  EXPECT_EQ(snapshot->OriginOf<kPlanCacheCount>().Describe(), path + ":5");
  EXPECT_THAT(snapshot->Get<kPlanSkip>(), testing::ElementsAre("fold", "cse"));
  EXPECT_EQ(snapshot->Get<kMemoryLimit>().For("cpu0"), ByteCount{1 << 30});
}

TEST_F(ConfigFile, OfACommandLineOptionOverridesThatOfTheVariable) {
  std::string a = dir_.Write("a.toml", "threads = 1"), b = dir_.Write("b.toml", "threads = 2\nseed = 5");
  Sources sources = FromEnvironment({{"MGE_CONFIG", a + ":" + b}});
  EXPECT_EQ(MustCreate(sources)->snapshot()->Get<kThreads>(), 2);
  sources.config_files = {a};
  auto registry = MustCreate(sources);
  EXPECT_EQ(registry->snapshot()->Get<kThreads>(), 1);
  EXPECT_EQ(registry->snapshot()->Get<kSeed>(), 0);
  EXPECT_EQ(InfoOf(*registry, "config").origin, "command line --config");
}

TEST_F(ConfigFile, IsNeverTakenFromTheWorkingDirectory) {
  dir_.Write("mge.toml", "threads = 7");
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  EXPECT_EQ(MustCreate({})->snapshot()->Get<kThreads>(), 0);
  std::filesystem::current_path(before);
}

TEST_F(ConfigFile, RefusesAnUnknownKeyWithTheNearestOne) {
  EXPECT_THAT(ErrorOfText("\n[engine]\ntpye = \"naive\"\n"),
              AllOf(HasSubstr("E0206"), HasSubstr("\"engine.tpye\""), HasSubstr("Did you mean \"engine.type\"?"),
                    HasSubstr("a.toml:3")));
  EXPECT_THAT(ErrorOfText("MXNET_ENGINE_TYPE = \"NaiveEngine\"\n"), HasSubstr("Its key is \"engine.type\"."));
  EXPECT_THAT(
      ErrorOfText("[planner]\nskip = [\"a\"]\n"),
      AllOf(HasSubstr("no setting has the key \"planner.skip\". It is now named \"plan.skip\"."), HasSubstr("a.toml:2")));
}

TEST_F(ConfigFile, RefusesADuplicateKey) {
  EXPECT_THAT(ErrorOfText("threads = 1\nthreads = 2\n"), AllOf(HasSubstr("E0206"), HasSubstr("a.toml:2")));
  EXPECT_THAT(ErrorOfText("engine.type = \"naive\"\n\"engine.type\" = \"threaded\"\n"),
              AllOf(HasSubstr("E0206"), HasSubstr("is set twice"), HasSubstr("a.toml:2")));
}

TEST_F(ConfigFile, RefusesAWrongType) {
  EXPECT_THAT(ErrorOfText("threads = \"2\"\n"),
              AllOf(HasSubstr("E0206"), HasSubstr("threads = \"2\" is a string, but the setting is of type int"),
                    HasSubstr("a.toml:1")));
  EXPECT_THAT(ErrorOfText("seed = 1.5\n"), HasSubstr("is a number, but the setting is of type int"));
  EXPECT_THAT(ErrorOfText("[plan]\ninplace = 1\n"), HasSubstr("a.toml:2"));
  EXPECT_THAT(ErrorOfText("[plan]\nskip = [1, 2]\n"), HasSubstr("elements that are not strings"));
  EXPECT_THAT(ErrorOfText("seed = 1979-05-27\n"), HasSubstr("a date or a time"));
  EXPECT_THAT(ErrorOfText("[[engine]]\ntype = \"naive\"\n"), HasSubstr("E0206"));
  EXPECT_THAT(ErrorOfText("[threads]\nmany = 1\n"), HasSubstr("threads.many"));
}

TEST_F(ConfigFile, NamesThePlaceOfABadValue) {
  EXPECT_THAT(ErrorOfText("\n\nthreads = 9999\n"),
              AllOf(HasSubstr("E0202"), HasSubstr("threads = 9999 is outside of 0..1024"), HasSubstr("a.toml:3")));
}

TEST_F(ConfigFile, RefusesTextThatIsNotToml) {
  EXPECT_THAT(ErrorOfText("threads = 1\nthis is no toml\n"), AllOf(HasSubstr("E0206"), HasSubstr("a.toml:2")));
  EXPECT_THAT(ErrorOfText("\x7f"
                          "ELF\1\2\3"),
              HasSubstr("E0206"));
  EXPECT_THAT(ErrorOfText("a = \"\xff\xfe\"\n"), HasSubstr("E0206"));
}

TEST_F(ConfigFile, RefusesToIncludeOthers) {
  EXPECT_THAT(ErrorOfText("include = \"a.toml\"\n"), AllOf(HasSubstr("E0206"), HasSubstr("include"), HasSubstr("a.toml:1")));
  EXPECT_THAT(ErrorOfText("config = [\"a.toml\"]\n"), HasSubstr("E0206"));
}

TEST_F(ConfigFile, RefusesALargeFileBeforeItIsRead) {
  std::string path = dir_.Write("huge.toml", "");
  ASSERT_EQ(truncate(path.c_str(), int64_t{1} << 30), 0);  // a sparse file
  EXPECT_THAT(ErrorOf({.config_files = {path}}), AllOf(HasSubstr("E0206"), HasSubstr("too large"), HasSubstr("1048576")));
}

TEST_F(ConfigFile, RefusesFilesThatAreNotRegularWithoutWaiting) {
  std::string fifo = dir_.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf({.config_files = {fifo}}), HasSubstr("E0206"));
  EXPECT_THAT(ErrorOf({.config_files = {dir_.path()}}), HasSubstr("E0206"));
  EXPECT_THAT(ErrorOf({.config_files = {"/dev/zero"}}), HasSubstr("E0206"));
  EXPECT_THAT(ErrorOf({.config_files = {dir_.path() + "/absent.toml"}}),
              AllOf(HasSubstr("E0206"), HasSubstr("absent.toml")));
}

TEST_F(ConfigFile, RefusesDeepNestingWithoutExhaustingTheStack) {
  std::string dotted = "a";
  while (dotted.size() < 4000) dotted += ".a";
  EXPECT_THAT(ErrorOfText(dotted + " = 1\n"), HasSubstr("E0206"));
  EXPECT_THAT(ErrorOfText("[" + dotted + "]\n" + dotted + " = 1\n"), HasSubstr("E0206"));
  std::string inlined;
  for (int i = 0; i < 200; ++i) inlined += dotted + " = [{\n";
  EXPECT_THAT(ErrorOfText(inlined), HasSubstr("E0206"));
  while (dotted.size() < 500'000) dotted += ".a";
  EXPECT_THAT(ErrorOfText(dotted + " = 1\n"), AllOf(HasSubstr("E0206"), HasSubstr("too long")));
}

TEST_F(ConfigFile, SurvivesEveryPrefixOfAFile) {
  std::string text = "threads = 2\n[plan]\nskip = [\"a\", 'b']\n[memory]\nlimit = \"\"\"1GiB\"\"\" # x\n";
  for (size_t size = 0; size <= text.size(); ++size) ErrorOfText(std::string_view(text).substr(0, size));
}

}  // namespace
}  // namespace mge
