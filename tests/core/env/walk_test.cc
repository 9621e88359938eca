// SPDX-License-Identifier: Apache-2.0
// Tests every row of the table of settings: values at its limits, given by a file, a variable, each alias and a call.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "core/env/config_file.h"
#include "core/env/foreign_values.h"
#include "core/env/setting_text.h"
#include "core/env/settings.h"
#include "fmt/format.h"
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

struct Sample {
  std::string text;  // the value in a variable
  std::string toml;  // the value in a file; empty if TOML cannot express it
  bool good;
};

Sample Plain(std::string text, bool good) { return {text, text, good}; }
Sample InQuotes(std::string text, bool good) { return {text, fmt::format("\"{}\"", text), good}; }

// Returns sample values of a row: default, word, both limits, one beyond each limit, and values of a wrong type.
std::vector<Sample> SamplesOf(const SettingRow& row) {
  std::vector<Sample> samples;
  std::string default_value = FormatSetting(row, DefaultOf(row));
  const Sample usual = default_value == row.word ? InQuotes(default_value, true) : Plain(default_value, true);
  const std::vector<Sample> words =
      row.word.empty() ? std::vector<Sample>{} : std::vector<Sample>{InQuotes(std::string(row.word), true)};
  switch (row.type) {
    case SettingType::kBool:
      return {Plain("true", true), Plain("false", true), {"1", "", true},
              {"0", "", true},     Plain("2", false),    InQuotes("x", false)};
    case SettingType::kInt:
      samples = {usual, {"two", "\"two\"", false}, Plain("1.5", false), Plain("1e99", false)};
      if (row.ranged) {
        samples.push_back(Plain(std::to_string(row.min.whole), true));
        samples.push_back(Plain(std::to_string(row.max.whole), true));
        if (row.min.whole > INT64_MIN) samples.push_back(Plain(std::to_string(row.min.whole - 1), false));
        if (row.max.whole < INT64_MAX) samples.push_back(Plain(std::to_string(row.max.whole + 1), false));
      }
      samples.insert(samples.end(), words.begin(), words.end());
      return samples;
    case SettingType::kBytes: {
      int64_t min = row.ranged ? row.min.whole : 0;
      int64_t max = row.ranged ? row.max.whole : INT64_MAX;
      samples = {InQuotes(default_value, true),         Plain(std::to_string(min), true), Plain(std::to_string(max), true),
                 Plain(std::to_string(min - 1), false), InQuotes("10QB", false),          Plain("true", false)};
      if (max < INT64_MAX) samples.push_back(Plain(std::to_string(max + 1), false));
      samples.insert(samples.end(), words.begin(), words.end());
      return samples;
    }
    case SettingType::kDouble:
    case SettingType::kSeconds: {
      double below = std::nextafter(row.min.real, -HUGE_VAL), above = std::nextafter(row.max.real, HUGE_VAL);
      auto number = [](double v) { return fmt::format("{:.17g}", v); };
      samples = {usual,
                 Plain(number(row.min.real), true),
                 Plain(number(row.max.real), true),
                 Plain(number(below), false),
                 Plain(number(above), false),
                 Plain("nan", false),
                 InQuotes("soon", false)};
      samples.insert(samples.end(), words.begin(), words.end());
      return samples;
    }
    case SettingType::kChoice:
      for (const Choice& choice : row.choices) {
        samples.push_back(InQuotes(std::string(choice.name), true));
        for (std::string_view spelling : Words(choice.spellings)) samples.push_back(InQuotes(std::string(spelling), true));
      }
      samples.push_back(InQuotes("no_such_choice", false));
      return samples;
    case SettingType::kFlags: {
      std::string all;
      for (const Choice& choice : row.choices) {
        samples.push_back(InQuotes(std::string(choice.name), true));
        all += (all.empty() ? "" : "_") + std::string(choice.name);
      }
      samples.push_back(InQuotes(all, true));
      samples.push_back(InQuotes(all + "_more", false));
      samples.push_back(InQuotes("_", false));
      return samples;
    }
    case SettingType::kText:
    case SettingType::kPath:
      if (!default_value.empty()) {
        samples.push_back(InQuotes(default_value, !default_value.starts_with('~')));  // there is no HOME
      }
      samples.push_back(Plain("1979-05-27", false));  // a date in a file; as text, the row's check decides
      samples.back().text.clear();
      if (row.check == IsAbsolutePath) {
        samples.push_back(InQuotes("/opt/x", true));
        samples.push_back(InQuotes("opt/x", false));
      } else if (row.check) {
        samples.push_back(InQuotes("no such thing", false));
      } else {
        samples.push_back(InQuotes("some text", true));
      }
      return samples;
    case SettingType::kTextList:
      return {{"a,b", "[\"a\", \"b\"]", true}, InQuotes("a", true), InQuotes("a b", false), Plain("[1, 2]", false)};
    case SettingType::kPathList:
      samples = {{"/a:/b", "[\"/a\", \"/b\"]", true}, InQuotes("/a", true)};
      if (row.check) samples.push_back(InQuotes("a", false));
      return samples;
    case SettingType::kMemoryLimits:
      return {InQuotes("1MiB", true),   InQuotes("cpu0=1GiB,gpu0=2GiB", true),
              InQuotes("cpu0=", false), InQuotes("0", false),
              Plain("1048576", true),   Plain("true", false)};
  }
  return samples;
}

class Walk : public testing::TestWithParam<size_t> {
 protected:
  const SettingRow& row() const { return kSettings[GetParam()]; }
  bool IsConfig() const { return row().key == kConfigFiles.key; }  // the setting that names files has its own test

  // Returns the sample's value as `mge env` prints it.
  std::string Expected(const Sample& sample) const {
    auto value = ParseSetting(row(), sample.text);
    EXPECT_TRUE(value.ok()) << row().key << " = " << sample.text << ": " << value.status();
    return value.ok() ? FormatSetting(row(), *value) : "";
  }
  void ExpectValue(Sources sources, const Sample& sample, const std::string& origin) const {
    auto registry = Registry::Create(std::move(sources), Logger(LogLevel::kSilent));
    ASSERT_EQ(registry.ok(), sample.good) << row().key << " = " << sample.text << "\n" << FormatError(registry.status());
    if (sample.good) {
      SettingInfo info = InfoOf(**registry, row().key);
      EXPECT_EQ(info.value, Expected(sample)) << row().key;
      EXPECT_EQ(info.origin, origin) << row().key;
    } else {
      std::string text = FormatError(registry.status());
      EXPECT_THAT(text, testing::HasSubstr(origin));
      EXPECT_EQ(KindOf(registry.status()), ErrorKind::kUsage);
    }
  }
};

// Returns whether the page of a name writes the row's word as this text.
bool IsWordOfThePage(std::string_view name, std::string_view text) {
  for (const ForeignValues& page : AllForeignValues()) {
    if (page.name == name && !page.word.empty() && page.word == text) return true;
  }
  return false;
}

TEST_P(Walk, ReadsTheWordAsThePageWritesItFromItsNameOnly) {
  std::vector<std::string> aliases;
  for (std::string_view alias : Words(row().aliases)) aliases.emplace_back(alias);
  for (const ForeignValues& page : AllForeignValues()) {
    const std::string name(page.name), word(page.word);
    if (word.empty() || std::find(aliases.begin(), aliases.end(), name) == aliases.end()) continue;
    for (const std::string& text : {word, " " + word + " "}) {
      const SettingInfo info = InfoOf(*MustCreate(FromEnvironment({{name, text}})), row().key);
      EXPECT_EQ(info.value, row().word) << name;
      EXPECT_EQ(info.origin, "environment " + name);
    }
    auto called = Registry::Create({.call = {{name, word}}}, Logger(LogLevel::kSilent));
    ASSERT_TRUE(called.ok()) << FormatError(called.status());
    EXPECT_EQ(InfoOf(**called, row().key).value, row().word);
    // By its key, the number is an amount, or an error.
    auto keyed = Registry::Create({.call = {{std::string(row().key), word}}}, Logger(LogLevel::kSilent));
    if (keyed.ok()) {
      EXPECT_EQ(std::stod(InfoOf(**keyed, row().key).value), std::stod(word)) << row().key;
    }
    auto wrong = Registry::Create(FromEnvironment({{name, "-7"}}), Logger(LogLevel::kSilent));
    EXPECT_THAT(FormatError(wrong.status()), testing::HasSubstr(", " + word)) << "the allowed values as on the page";
  }
}

TEST_P(Walk, ReadsTheLimitsFromTheEnvironment) {
  if (IsConfig()) GTEST_SKIP() << "names files; config_file_test.cc reads them";
  std::vector<std::string> names = {VariableOf(row().key)};
  for (std::string_view alias : Words(row().aliases)) names.emplace_back(alias);
  for (const Sample& sample : SamplesOf(row())) {
    if (sample.text.empty()) continue;
    for (const std::string& name : names) {
      if (IsWordOfThePage(name, sample.text)) continue;
      ExpectValue(FromEnvironment({{name, sample.text}}), sample, "environment " + name);
    }
  }
}

// Returns the text with capitals for small letters and the reverse.
std::string OtherCase(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::islower(static_cast<unsigned char>(c)) ? std::toupper(c) : std::tolower(c));
  return text;
}

TEST_P(Walk, ReadsEverySpellingOfAPageWithoutCase) {
  std::vector<std::string> names = {VariableOf(row().key)};
  for (std::string_view alias : Words(row().aliases)) names.emplace_back(alias);
  for (const ForeignValues& page : AllForeignValues()) {
    if (page.allowed.empty() || std::find(names.begin(), names.end(), page.name) == names.end()) continue;
    std::stringstream words{std::string(page.allowed)};
    for (std::string word; std::getline(words >> std::ws, word, ',');) {
      const Sample sample = Plain(word, true);
      ExpectValue(FromEnvironment({{std::string(page.name), word}}), sample, "environment " + std::string(page.name));
      ExpectValue(FromEnvironment({{std::string(page.name), OtherCase(word)}}), sample,
                  "environment " + std::string(page.name));
    }
    auto wrong = Registry::Create(FromEnvironment({{std::string(page.name), "no_such_value"}}), Logger(LogLevel::kSilent));
    EXPECT_THAT(FormatError(wrong.status()), testing::HasSubstr(std::string(page.allowed)));
  }
}

TEST_P(Walk, IgnoresSpacesAndCaseAndRefusesOverflow) {
  if (IsConfig()) GTEST_SKIP() << "names files; config_file_test.cc reads them";
  const bool text = row().type == SettingType::kText || row().type == SettingType::kPath ||
                    row().type == SettingType::kTextList || row().type == SettingType::kPathList;
  const std::string variable = VariableOf(row().key);
  for (const Sample& sample : SamplesOf(row())) {
    if (sample.text.empty() || !sample.good) continue;
    ExpectValue(FromEnvironment({{variable, " \t" + sample.text + "  "}}), sample, "environment " + variable);
    if (!text && row().type != SettingType::kMemoryLimits) {
      ExpectValue(FromEnvironment({{variable, OtherCase(sample.text)}}), sample, "environment " + variable);
    }
  }
  const bool number = row().type == SettingType::kInt || row().type == SettingType::kBytes ||
                      row().type == SettingType::kDouble || row().type == SettingType::kSeconds;
  if (!number) return;
  for (std::string huge : {"9223372036854775808", "-9223372036854775809", "99999999999999999999999", "1e400"}) {
    const bool real = row().type == SettingType::kDouble || row().type == SettingType::kSeconds;
    if (real && huge != "1e400" && (!row().ranged || std::abs(std::stod(huge)) <= row().max.real)) {
      continue;
    }
    ExpectValue(FromEnvironment({{variable, huge}}), {huge, "", false}, "environment " + variable);
  }
}

TEST_P(Walk, LetsAnOptionWinOverAVariableAndChecksBoth) {
  if (IsConfig()) GTEST_SKIP() << "names files; config_file_test.cc reads them";
  std::string good, other, bad;
  for (const Sample& sample : SamplesOf(row())) {
    if (sample.text.empty()) continue;
    if (!sample.good) bad = sample.text;
    if (sample.good && good.empty()) good = sample.text;
    if (sample.good) other = sample.text;
  }
  if (good.empty()) return;                                // only a group of ranks has such values
  if (row().key == kMemoryStaticPolicy.key) other = good;  // page 004: different values are an error
  Sources sources = FromEnvironment({{VariableOf(row().key), other}});
  sources.command_line = {{std::string(row().key), good, "--option"}};
  ExpectValue(sources, Plain(good, true), "command line --option");
  if (bad.empty()) return;
  sources = FromEnvironment({{VariableOf(row().key), bad}});
  sources.command_line = {{std::string(row().key), good, "--option"}};
  EXPECT_FALSE(Registry::Create(sources, Logger(LogLevel::kSilent)).ok()) << row().key;
}

TEST_P(Walk, ReadsTheLimitsFromAFile) {
  if (IsConfig()) GTEST_SKIP() << "cannot stand in a file";
  ScratchDir dir;
  for (const Sample& sample : SamplesOf(row())) {
    if (sample.toml.empty()) continue;
    std::string path = dir.Write("a.toml", fmt::format("# a comment\n{} = {}\n", row().key, sample.toml));
    ExpectValue({.config_files = {path}}, sample, path + ":2");
  }
}

TEST_P(Walk, ReadsTheLimitsFromACall) {
  if (IsConfig()) GTEST_SKIP() << "is read when the registry is made";
  for (const Sample& sample : SamplesOf(row())) {
    if (sample.text.empty()) continue;
    ExpectValue({.call = {{std::string(row().key), sample.text}}}, sample, "call");
  }
}

TEST_P(Walk, GoesBackToItsDefault) {
  auto registry = MustCreate({});
  SettingInfo untouched = InfoOf(*registry, row().key);
  EXPECT_EQ(untouched.value, untouched.default_value);
  EXPECT_EQ(untouched.origin, "default");
  for (const Sample& sample : SamplesOf(row())) {
    if (!sample.good || sample.text.empty()) continue;
    absl::Status set = registry->Set(row().key, sample.text);
    if (set.code() ==
        absl::StatusCode::kFailedPrecondition) {  // settings of the registry itself are read when it is created
      EXPECT_EQ(ErrorId(set), errors::kSettingTooLate.id);
      continue;
    }
    ASSERT_TRUE(set.ok()) << FormatError(set);
    EXPECT_EQ(InfoOf(*registry, row().key).value, Expected(sample));
    EXPECT_EQ(InfoOf(*registry, row().key).origin, "call");
    ASSERT_TRUE(registry->Set(row().key, "").ok());
    EXPECT_EQ(InfoOf(*registry, row().key).value, untouched.value);
    EXPECT_EQ(InfoOf(*registry, row().key).origin, "default");
  }
}

TEST_P(Walk, EmptyMeansUnset) {
  ScratchDir dir;
  std::string variable = VariableOf(row().key);
  SettingInfo info = InfoOf(*MustCreate({.call = {{std::string(row().key), ""}},
                                         .command_line = {{std::string(row().key), ""}},
                                         .environment = {{{variable, ""}}}}),
                            row().key);
  EXPECT_EQ(info.origin, "default");
}

TEST_P(Walk, ObeysItsLifecycle) {
  auto registry = MustCreate({});
  registry->MarkRead();
  for (const Sample& sample : SamplesOf(row())) {
    if (!sample.good || sample.text.empty()) continue;
    absl::Status status = registry->Set(row().key, sample.text);
    if (row().lifecycle == Lifecycle::kDynamic) {
      EXPECT_TRUE(status.ok()) << FormatError(status);
    } else {
      EXPECT_EQ(ErrorId(status), errors::kSettingTooLate.id) << row().key;
      if (!row().instead.empty()) {
        EXPECT_THAT(PartsOf(status).fix, testing::HasSubstr(row().instead));
      }
    }
  }
}

TEST_P(Walk, IsTakenFromTheEnvironmentInStrictModeWithoutAWarning) {
  for (const Sample& sample : SamplesOf(row())) {
    if (!sample.good || sample.text.empty() || IsConfig()) continue;
    LogLines log;
    auto strict =
        Registry::Create(FromEnvironment({{VariableOf(row().key), sample.text}, {"MGE_ENV_STRICT", "1"}}), log.logger());
    ASSERT_TRUE(strict.ok()) << FormatError(strict.status());
    EXPECT_TRUE((*strict)->CheckUnknown().ok());
    EXPECT_THAT(log.lines, testing::IsEmpty());
    break;
  }
}

TEST_P(Walk, IsPartOfAPlansKeyIfItIsDynamic) {
  auto registry = MustCreate({});
  std::string before = registry->snapshot()->DynamicKey();
  EXPECT_EQ(before, "");
  for (const Sample& sample : SamplesOf(row())) {
    if (!sample.good || sample.text.empty() || !registry->Set(row().key, sample.text).ok()) continue;
    const std::string usual = FormatSetting(row(), DefaultOf(row()));
    bool changed = InfoOf(*registry, row().key).value != usual || !row().unset.empty();
    bool dynamic = row().lifecycle == Lifecycle::kDynamic;
    EXPECT_EQ(registry->snapshot()->DynamicKey() != before, changed && dynamic) << row().key << " = " << sample.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Walk, testing::Range<size_t>(0, kSettings.size()), [](const auto& info) {
  std::string name(kSettings[info.param].key);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace mge
