// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "mge/plugin.h"
#include "tests/sdk/offsets.h"

namespace {

std::string Written() {
  std::string out =
      "# Constants, and in bytes the sizes and offsets of the plugin interface. Until interface 1.0 a change is allowed, "
      "and is\n"
      "# made by copying build/PRESET/tests/plugin_abi.txt here; after it, lines are only ever added.\n";
  for (const AbiRow& row : AbiRows()) {
    out += row.type;
    if (std::string(row.member) == "=") {
      out += " =";
    } else if (*row.member) {
      out += std::string(".") + row.member;
    }
    out += " " + std::to_string(row.value) + "\n";
  }
  return out;
}

TEST(PluginAbi, IsTheOneOfTheCheckedInFile) {
  std::string now = Written();
  std::ofstream(MGE_BINARY_DIR "/tests/plugin_abi.txt") << now;
  std::ifstream in(MGE_SOURCE_DIR "/tests/abi/plugin_abi.txt");
  std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(now, golden) << "if the change is meant, copy " MGE_BINARY_DIR "/tests/plugin_abi.txt to tests/abi/";
}

TEST(PluginAbi, TheDerivedListHasStructsAndEveryKindOfConstant) {
  size_t sized = 0;
  std::set<std::string> names;
  for (const AbiRow& row : AbiRows()) {
    sized += row.member == std::string("struct_size");
    names.insert(row.type);
  }
  EXPECT_GT(sized, 35u);
  for (const char* name :
       {"mge_text", "mge_ready_made", "mge_faults_api", "MGE_ABI_MAJOR", "MGE_DEVICE_LOST", "MGE_LINK_PEER",
        "MGE_KERNEL_TENSOR_CORE", "MGE_SETTING_CHOICE", "MGE_DTYPE_BF16", "MGE_NOTE_TYPE"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
}

// Every struct that may grow begins with its size. The exceptions can never grow, because other structs contain them by
// value: texts, slots, pairs and the ELF section.
TEST(PluginAbi, StructsBeginWithTheirSize) {
  const std::set<std::string> fixed = {"mge_text", "mge_slot", "mge_in_place", "mge_note_section"};
  for (size_t i = 0; i + 1 < AbiRows().size(); ++i) {
    if (*AbiRows()[i].member || fixed.count(AbiRows()[i].type)) continue;
    EXPECT_STREQ(AbiRows()[i + 1].member, "struct_size") << AbiRows()[i].type;
    EXPECT_EQ(AbiRows()[i + 1].value, 0u);
  }
}

// Runs a command. Returns the lines that it prints.
std::vector<std::string> Lines(const std::string& command) {
  std::vector<std::string> out;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  for (char line[4096]; std::fgets(line, sizeof(line), pipe);) out.emplace_back(line);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

class Backend : public testing::TestWithParam<const char*> {
 protected:
  std::string Library() const { return std::string(MGE_BINARY_DIR "/lib/mge/plugins/mge_") + GetParam() + ".so"; }
};

TEST_P(Backend, ExportsOneSymbol) {
  std::vector<std::string> lines = Lines("nm -D --defined-only '" + Library() + "'");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(" T " MGE_PLUGIN_QUERY_SYMBOL), std::string::npos);
}

TEST_P(Backend, ImportsNothingOfTheHost) {
  for (const std::string& line : Lines("nm -D --undefined-only '" + Library() + "'")) {
    EXPECT_EQ(line.find(" mge_"), std::string::npos) << line;
    EXPECT_EQ(line.find("3mge"), std::string::npos) << line;
  }
}

TEST_P(Backend, CarriesItsNoteAndABuildId) {
  std::string notes;
  for (const std::string& line : Lines("readelf -nW '" + Library() + "'")) notes += line;
  EXPECT_NE(notes.find(MGE_NOTE_SECTION), std::string::npos);
  EXPECT_NE(notes.find("Build ID"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Backend, testing::Values(MGE_TEST_BACKENDS),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
