// SPDX-License-Identifier: Apache-2.0
#include "core/env/pages.h"

#include <cstdlib>
#include <sstream>

#include "core/env/setting_text.h"
#include "core/env/settings.h"
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

// Compares a page with the checked-in file. If MGE_TEST_UPDATE is 1, writes the file instead.
void ExpectFresh(const std::string& name, const std::string& page) {
  std::string path = std::string(MGE_SOURCE_DIR) + "/configs/" + name;
  const char* update = std::getenv("MGE_TEST_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") {
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  std::stringstream present;
  present << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_TRUE(present.str() == page) << path << " is stale; MGE_TEST_UPDATE=1 " << MGE_BINARY_DIR
                                     << "/tests/test_core_env --gtest_filter='Pages.*' writes it anew";
}

TEST(Pages, SettingsMarkdownIsFresh) { ExpectFresh("SETTINGS.md", SettingsMarkdown()); }
TEST(Pages, MgeTomlIsFresh) { ExpectFresh("mge.toml", SettingsToml()); }

TEST(Pages, HoldEveryKeyAndVariable) {
  std::string markdown = SettingsMarkdown();
  for (const SettingInfo& info : MustCreate({})->List()) {
    EXPECT_THAT(markdown, testing::HasSubstr("`" + info.key + "`"));
    EXPECT_THAT(markdown, testing::HasSubstr("`" + info.variable + "`"));
    for (const std::string& alias : info.aliases) EXPECT_THAT(markdown, testing::HasSubstr("`" + alias + "`"));
  }
}

TEST(Pages, MgeTomlIsValidWithEveryLineInEffect) {
  std::istringstream lines(SettingsToml());
  std::string text;
  int values = 0;
  for (std::string line; std::getline(lines, line);) {
    bool value = line.starts_with("# ") && line.find(" = ") != line.npos && line.find(' ', 2) == line.find(" = ");
    values += value;
    text += (value ? line.substr(2) : line) + "\n";
  }
  EXPECT_EQ(values, static_cast<int>(kSettings.size()) - 1);  // all keys except `config`, which a file may not set
  ScratchDir dir;
  auto registry = MustCreate({.config_files = {dir.Write("all.toml", text)}, .environment = {{{"HOME", "/users/a"}}}});
  ASSERT_TRUE(registry->CheckUnknown().ok());
  for (const SettingRow& row : kSettings) {
    if (row.key == kConfigFiles.key) continue;
    EXPECT_EQ(InfoOf(*registry, row.key).value, FormatSetting(row, DefaultOf(row, "/users/a"))) << row.key;
  }
}

}  // namespace
}  // namespace mge
