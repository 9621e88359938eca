// SPDX-License-Identifier: Apache-2.0
#include "core/env/settings.h"

#include <set>

#include "core/env/removed_names.h"
#include "core/env/setting_table.h"
#include "core/env/setting_text.h"
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

constexpr SettingRow kGood = {.key = "a.b",
                              .type = SettingType::kInt,
                              .default_value = {.whole = 1},
                              .ranged = true,
                              .min = {.whole = 0},
                              .max = {.whole = 2},
                              .doc = "Does something."};

constexpr bool WithGood(SettingRow row) { return ValidSettings(std::array{kGood, row}); }

// Returns a good row with one change. A table with such a row must not compile.
constexpr SettingRow Changed(void (*change)(SettingRow&)) {
  SettingRow row = kGood;
  row.key = "c.d";
  change(row);
  return row;
}

TEST(SettingTable, AcceptsAGoodRow) {
  static_assert(WithGood(Changed([](SettingRow&) {})));
}

TEST(SettingTable, RefusesTwoRowsOfOneName) {
  static_assert(!WithGood(Changed([](SettingRow& row) { row.key = "a.b"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.key = "a_b"; })));  // the same variable, MGE_A_B
  static_assert(!WithGood(Changed([](SettingRow& row) { row.aliases = "X MGE_A_B"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.aliases = "X Y X"; })));
}

TEST(SettingTable, RefusesABadRow) {
  static_assert(!WithGood(Changed([](SettingRow& row) { row.default_value.whole = 3; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.doc = "no sentence"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.key = "C.d"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.key = "c..d"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.type = SettingType::kChoice; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.type = SettingType::kText; })));  // a range on a text setting
}

TEST(SettingTable, RefusesAKeyThatDoesNotTellItsUnit) {
  static_assert(!WithGood(Changed([](SettingRow& row) { row.unit = "threads"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.unit = "plans"; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.type = SettingType::kBytes; })));
  static_assert(!WithGood(Changed([](SettingRow& row) { row.key = "c.d_count", row.unit = "threads"; })));
  static_assert(WithGood(Changed([](SettingRow& row) { row.key = "c.d_count", row.unit = "plans"; })));
  static_assert(WithGood(Changed([](SettingRow& row) { row.key = "c.plans", row.unit = "plans"; })));
  static_assert(WithGood(Changed([](SettingRow& row) { row.key = "c.d_bytes", row.type = SettingType::kBytes; })));
}

TEST(SettingTable, RefusesAWordForANumberInTheRange) {
  static_assert(!WithGood(Changed([](SettingRow& row) { row.word = "unlimited"; })));  // 0 is in the range
  static_assert(WithGood(Changed([](SettingRow& row) { row.word = "unlimited", row.word_value.whole = 3; })));
  static_assert(
      !WithGood(Changed([](SettingRow& row) { row.word = "unlimited", row.word_value.whole = 3, row.ranged = false; })));
}

TEST(RemovedNames, HaveASuccessorThatExistsAndAreNoNamesToday) {
  auto registry = MustCreate({});
  std::set<std::string> known;
  for (const SettingInfo& info : registry->List()) {
    known.insert({info.key, info.variable});
    known.insert(info.aliases.begin(), info.aliases.end());
  }
  for (const RemovedKey& row : kRemovedKeys) {
    EXPECT_FALSE(known.contains(std::string(row.key))) << row.key;
    EXPECT_FALSE(known.contains(VariableOf(row.key))) << row.key;
    const bool of_backend = row.successor.starts_with("cpu.") || row.successor.starts_with("virtual.");
    EXPECT_TRUE(of_backend || known.contains(std::string(row.successor))) << row.successor;
    EXPECT_EQ(SuccessorOf(row.key), row.successor);
    EXPECT_EQ(SuccessorOf(VariableOf(row.key)), VariableOf(row.successor));
  }
  for (const RemovedKey& row : kRemovedVariables) {
    EXPECT_FALSE(known.contains(std::string(row.key))) << row.key;
    EXPECT_TRUE(known.contains(std::string(row.successor))) << row.successor;
  }
  EXPECT_EQ(SuccessorOf("threads"), "");
}

TEST(Settings, KnowEveryNameOfTheSeeds) {
  std::set<std::string> known;
  for (const SettingRow& row : kSettings) {
    known.insert(VariableOf(row.key));
    for (std::string_view alias : Words(row.aliases)) known.emplace(alias);
  }
  std::ifstream file(MGE_TEST_DIR "/seed_names.txt");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_TRUE(known.contains(line)) << line << " is neither a variable nor an alias of a setting";
    ++count;
  }
  EXPECT_EQ(count, 81);
}

TEST(Settings, DeriveTheirVariablesFromTheirKeys) {
  EXPECT_EQ(VariableOf(kDefaultDevice.key), "MGE_DEFAULT_DEVICE");
  EXPECT_EQ(VariableOf(kStrictEnv.key), "MGE_ENV_STRICT");
  EXPECT_EQ(VariableOf(kSelectCacheDir.key), "MGE_SELECT_CACHE_DIR");
  EXPECT_EQ(VariableOf(kEngineType.key), "MGE_ENGINE_TYPE");
  EXPECT_EQ(VariableOf(kMemoryLimit.key), "MGE_MEMORY_LIMIT");
  EXPECT_EQ(VariableOf(kConfigFiles.key), "MGE_CONFIG");
  EXPECT_EQ(VariableOf(kPluginPath.key), "MGE_PLUGIN_PATH");
}

TEST(Settings, HaveDefaultsThatPassTheirOwnChecks) {
  for (const SettingRow& row : kSettings) {
    std::string text = FormatSetting(row, DefaultOf(row));
    if (text.empty()) continue;
    auto parsed = ParseSetting(row, text, "/users/a");
    ASSERT_TRUE(parsed.ok()) << row.key << " = " << text << " " << parsed.status();
    EXPECT_EQ(*parsed, DefaultOf(row, "/users/a")) << row.key;
  }
}

TEST(Settings, DescribeTheValuesThatTheirChecksAllow) {
  for (const SettingRow& row : kSettings) EXPECT_TRUE(row.check == nullptr || !row.allowed.empty()) << row.key;
}

TEST(Settings, AcceptTheSpellingsOfTheirAliases) {
  auto accepts = [](const SettingRow& row, std::string_view text, int64_t value) {
    auto parsed = ParseSetting(row, text);
    ASSERT_TRUE(parsed.ok()) << row.key << " = " << text;
    EXPECT_EQ(std::get<int64_t>(*parsed), value) << row.key << " = " << text;
  };
  auto value = [](auto e) { return static_cast<int64_t>(e); };
  accepts(kEngineType.Row(), "NaiveEngine", value(EngineType::kNaive));
  accepts(kEngineType.Row(), "ThreadedEngine", value(EngineType::kThreaded));
  accepts(kEngineType.Row(), "ThreadedEnginePerDevice", value(EngineType::kThreadedPerDevice));
  accepts(kLogOverride.Row(), "4", value(LogOverride::kSilent));
  accepts(kLogLevel.Row(), "WARNING", value(LogLevel::kWarning));
  accepts(kSelectConvAutotune.Row(), "2", value(ConvAutotune::kFastest));
  accepts(kMemoryStaticPolicy.Row(), "1", value(StaticMemory::kStatic));
  accepts(kMemoryGpuPool.Row(), "Round", value(GpuPool::kRound));
  accepts(kJitBackend.Row(), "NVRTC", value(JitBackend::kNvrtc));
  accepts(kSelectCacheType.Row(), "MEMORY", value(TuningStore::kMemory));
  accepts(kSelectStrategy.Row(), "PROFILE_REPRODUCEABLE", 2 | 4);
  accepts(kSelectStrategy.Row(), "heuristic|profile", 1 | 2);
  accepts(kSelectStrategy.Row(), "OPTIMIZED", 8);
}

}  // namespace
}  // namespace mge
