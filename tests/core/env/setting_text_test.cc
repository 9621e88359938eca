// SPDX-License-Identifier: Apache-2.0
#include "core/env/setting_text.h"

#include <cmath>

#include "core/env/settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::HasSubstr;

SettingRow RowOf(SettingType type) { return {.key = "a.b", .type = type, .doc = "Does something."}; }

std::string Parsed(const SettingRow& row, std::string_view text) {
  auto value = ParseSetting(row, text);
  return value.ok() ? FormatSetting(row, *value) : std::string(Std(value.status().message()));
}

TEST(SettingText, ReadsBooleans) {
  for (std::string_view text : {"1", "true", "TRUE", " on ", "yes"})
    EXPECT_EQ(Parsed(RowOf(SettingType::kBool), text), "true");
  for (std::string_view text : {"0", "false", "Off", "no"}) EXPECT_EQ(Parsed(RowOf(SettingType::kBool), text), "false");
  for (std::string_view text : {"2", "maybe", "01", "tru"}) {
    EXPECT_EQ(Parsed(RowOf(SettingType::kBool), text), "is neither 1 nor 0") << text;
  }
}

TEST(SettingText, ReadsIntegersAndRefusesTrailingText) {
  SettingRow row = RowOf(SettingType::kInt);
  EXPECT_EQ(Parsed(row, " 5 "), "5");
  EXPECT_EQ(Parsed(row, "+7"), "7");
  EXPECT_EQ(Parsed(row, "-3"), "-3");
  EXPECT_EQ(Parsed(row, "9223372036854775807"), "9223372036854775807");
  for (std::string_view text : {"two", "1e99", "1.5", "0x10", "5x", "9223372036854775808", "+-1", "--1", "-"}) {
    EXPECT_EQ(Parsed(row, text), "is not a whole number") << text;
  }
}

TEST(SettingText, ReadsNumbersAndRefusesTrailingText) {
  SettingRow row = RowOf(SettingType::kDouble);
  EXPECT_EQ(Parsed(row, "0.7"), "0.7");
  EXPECT_EQ(Parsed(row, "1e-3"), "0.001");
  for (std::string_view text : {"0.7abc", "nan", "inf", "-inf", "1e999", "."}) {
    EXPECT_EQ(Parsed(row, text), "is not a number") << text;
  }
}

TEST(SettingText, ReadsSizesWithUnits) {
  SettingRow row = RowOf(SettingType::kBytes);
  EXPECT_EQ(Parsed(row, "4096"), "4KiB");
  EXPECT_EQ(Parsed(row, "1000"), "1000");
  EXPECT_EQ(Parsed(row, "512MiB"), "512MiB");
  EXPECT_EQ(Parsed(row, "2G"), "2GiB");
  EXPECT_EQ(Parsed(row, "5GB"), "5000000000");
  EXPECT_EQ(Parsed(row, "1.5 gib"), "1536MiB");
  EXPECT_EQ(Parsed(row, "7b"), "7");
  EXPECT_EQ(Parsed(row, "0"), "0");
  EXPECT_EQ(Parsed(row, "8388607TiB"), "8388607TiB");
  for (std::string_view text : {"10QB", "-1", "8388608TiB", "1e3", "G", "1.5", "1GiBs", "1 2", "99999999999999999999"}) {
    EXPECT_THAT(Parsed(row, text), HasSubstr("is not a size")) << text;
  }
}

TEST(SettingText, ReadsTimesWithUnits) {
  SettingRow row = RowOf(SettingType::kSeconds);
  EXPECT_EQ(Parsed(row, "1.5"), "1.5");
  EXPECT_EQ(Parsed(row, "500ms"), "0.5");
  EXPECT_EQ(Parsed(row, "2 s"), "2");
  EXPECT_EQ(Parsed(row, "3min"), "180");
  EXPECT_EQ(Parsed(row, "1h"), "3600");
  EXPECT_EQ(Parsed(row, "1e2"), "100");
  for (std::string_view text : {"2d", "ms", "1m", "inf", "1s2"})
    EXPECT_THAT(Parsed(row, text), HasSubstr("is not a time")) << text;
}

TEST(SettingText, TellsAWordForNoLimitFromZero) {
  const SettingRow count = kPlanCacheCount.Row(), bytes = kPlanCacheBytes.Row(), seconds = kRunTimeout.Row();
  for (const SettingRow& row : {count, bytes, seconds}) {
    EXPECT_EQ(Parsed(row, " Unlimited "), "unlimited");
    EXPECT_EQ(PlainText(row, *ParseSetting(row, "unlimited")), "unlimited");
    EXPECT_EQ(ReadConfigValue(row, "unlimited"), ParseSetting(row, "unlimited"));
  }
  EXPECT_EQ(Parsed(count, "0"), "is outside of 1..1048576, unlimited");
  EXPECT_EQ(Parsed(count, "9223372036854775807"), "is outside of 1..1048576, unlimited");
  EXPECT_EQ(Parsed(bytes, "0"), "is outside of 1..64TiB, unlimited");
  EXPECT_THAT(Parsed(seconds, "0"), HasSubstr("is outside of"));
  EXPECT_EQ(Parsed(kDebugWatchValue.Row(), "none"), "none");
  EXPECT_THAT(Parsed(kThreads.Row(), "unlimited"), HasSubstr("is not a whole number"));
}

TEST(SettingText, ReadsLimitsForAllDevicesAndForSome) {
  SettingRow row = kMemoryLimit.Row();
  EXPECT_EQ(Parsed(row, "256MiB"), "256MiB");
  EXPECT_EQ(Parsed(row, "cpu0=1GiB, gpu0 = 2G"), "cpu0=1GiB,gpu0=2GiB");
  EXPECT_EQ(Parsed(row, "gpu0=2G,256M"), "256MiB,gpu0=2GiB");
  auto limits = std::get<MemoryLimits>(*ParseSetting(row, "1G,gpu0=2G"));
  EXPECT_EQ(limits.For("gpu0")->count, int64_t{2} << 30);
  EXPECT_EQ(limits.For("cpu0")->count, int64_t{1} << 30);
  EXPECT_FALSE(std::get<MemoryLimits>(*ParseSetting(row, "gpu0=2G")).For("cpu0").has_value());
  EXPECT_THAT(Parsed(row, "10QB"), HasSubstr("in place of a size of at least 1"));
  EXPECT_THAT(Parsed(row, "0"), HasSubstr("in place of a size of at least 1"));
  EXPECT_THAT(Parsed(row, "=1G"), HasSubstr("without a device"));
  EXPECT_THAT(Parsed(row, "gpu0=1G,gpu0=2G"), HasSubstr("two sizes for \"gpu0\""));
  EXPECT_THAT(Parsed(row, "1G,2G"), HasSubstr("two sizes for every device"));
}

TEST(SettingText, ReadsLists) {
  EXPECT_EQ(Parsed(kPlanSkip.Row(), "a, b ,,c"), "a,b,c");
  EXPECT_THAT(Parsed(kPlanSkip.Row(), "a,b c"), HasSubstr("has the entry \"b c\""));
  EXPECT_EQ(Parsed(kPluginPath.Row(), "/a:/b"), "/a:/b");
  EXPECT_THAT(Parsed(kPluginPath.Row(), "/a:b"), HasSubstr("allowed: absolute directories"));
}

TEST(SettingText, ExpandsTildeToTheHomeFolderInEveryTypeOfPath) {
  auto text = [](const SettingRow& row, std::string_view value, std::string_view home) {
    auto parsed = ParseSetting(row, value, home);
    return parsed.ok() ? FormatSetting(row, *parsed) : std::string(Std(parsed.status().message()));
  };
  const SettingRow path = kSelectCacheDir.Row(), list = kPluginPath.Row();
  EXPECT_EQ(text(path, "~", "/users/a"), "/users/a");
  EXPECT_EQ(text(path, "~/b/~", "/users/a"), "/users/a/b/~");
  EXPECT_EQ(text(path, "b/~", "/users/a"), "b/~");
  EXPECT_EQ(text(kCacheDir.Row(), "~/blobs", "/users/a"), "/users/a/blobs");  // checked after the expansion
  EXPECT_EQ(text(list, "/x:~/y", "/users/a"), "/x:/users/a/y");
  EXPECT_EQ(text(kSeed.Row(), "~", "/users/a"), "is not a whole number");
  EXPECT_THAT(text(path, "~root/b", "/users/a"), HasSubstr("names another user's folder"));
  EXPECT_THAT(text(list, "/x:~root", "/users/a"), HasSubstr("names another user's folder"));
  EXPECT_THAT(text(path, "~/b", ""), HasSubstr("HOME is not set"));
  EXPECT_EQ(std::get<std::vector<std::string>>(*ReadConfigValue(list, std::vector<std::string>{"~/y"}, "/users/a")),
            std::vector<std::string>{"/users/a/y"});
}

TEST(SettingText, NamesTheAllowedValues) {
  EXPECT_EQ(AllowedText(kThreads.Row()), "0..1024");
  EXPECT_EQ(AllowedText(kEngineType.Row()), "naive, threaded, threaded_per_device");
  EXPECT_EQ(AllowedText(kMemoryLargeRound.Row()), "1 or more");
  EXPECT_EQ(AllowedText(kPlanInplace.Row()), "1, 0, true, false");
}

TEST(SettingText, EscapesAndShortensQuotedValues) {
  EXPECT_EQ(Quoted("a\033[31m"), "\"a\\x1b[31m\"");
  EXPECT_EQ(Quoted(std::string(500, 'x')).size(), 85u);
}

TEST(SettingText, DistinguishesAWrongTypeFromAWrongValue) {
  auto code = [](const SettingRow& row, ConfigValue value) { return ReadConfigValue(row, value).status().code(); };
  EXPECT_EQ(code(kThreads.Row(), "2"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(kThreads.Row(), 2.0), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(kThreads.Row(), int64_t{-1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kThreads.Row(), int64_t{2}), absl::StatusCode::kOk);
  EXPECT_EQ(code(kPlanInplace.Row(), int64_t{1}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(kKvstorePenalty.Row(), int64_t{1}), absl::StatusCode::kOk);
  EXPECT_EQ(code(kKvstorePenalty.Row(), std::nan("")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kRunTimeout.Row(), "500ms"), absl::StatusCode::kOk);
  EXPECT_EQ(code(kMemoryLimit.Row(), int64_t{1} << 30), absl::StatusCode::kOk);
  EXPECT_EQ(code(kPlanSkip.Row(), std::vector<std::string>{"a", "b"}), absl::StatusCode::kOk);
  EXPECT_EQ(code(kDefaultDevice.Row(), std::string("cpu\0", 4)), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mge
