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

// Returns the text of a checked-in file about the interface.
std::string TextOf(const Abi& abi, const std::string& interface, const std::string& file) {
  std::string out = "# Constants, and in bytes the sizes and offsets of the " + interface +
                    ". Until interface 1.0 a change is allowed, and is\n# made by copying build/PRESET/tests/" + file +
                    " here; after it, lines are only ever added.\n";
  for (const AbiRow& row : abi.rows) {
    out += row.type;
    if (std::string(row.member) == "=") {
      out += " =";
    } else if (*row.member) {
      out += std::string(".") + row.member;
    }
    out += " " + std::to_string(row.value) + "\n";
  }
  for (const char* function : abi.functions) out += std::string(function) + "\n";
  return out;
}

// Writes the text of the interface as it is now, and compares it with the checked-in file.
void ExpectUnchanged(const Abi& abi, const std::string& interface, const std::string& file) {
  const std::string now = TextOf(abi, interface, file), written = MGE_BINARY_DIR "/tests/" + file;
  std::ofstream(written) << now;
  std::ifstream in(MGE_SOURCE_DIR "/tests/abi/" + file);
  EXPECT_EQ(now, std::string(std::istreambuf_iterator<char>(in), {}))
      << "if the change is meant, copy " << written << " to tests/abi/";
}

// Expects that every struct that may grow begins with its size. `fixed` can never grow, because others contain them by value.
void ExpectSizes(const Abi& abi, const std::set<std::string>& fixed) {
  for (size_t i = 0; i + 1 < abi.rows.size(); ++i) {
    if (*abi.rows[i].member || fixed.count(abi.rows[i].type)) continue;
    EXPECT_STREQ(abi.rows[i + 1].member, "struct_size") << abi.rows[i].type;
    EXPECT_EQ(abi.rows[i + 1].value, 0u);
  }
}

TEST(PluginAbi, IsTheOneOfTheCheckedInFile) { ExpectUnchanged(PluginAbi(), "plugin interface", "plugin_abi.txt"); }

TEST(ApplicationAbi, IsTheOneOfTheCheckedInFile) {
  ExpectUnchanged(ApplicationAbi(), "interface of applications", "application_abi.txt");
}

TEST(ApplicationAbi, TheDerivedListHasStructsConstantsAndFunctions) {
  std::set<std::string> names;
  for (const AbiRow& row : ApplicationAbi().rows) names.insert(std::string(row.type) + "." + row.member);
  for (const char* name : {"mge_session_options.", "mge_session_options.training", "mge_training_options.beta2",
                           "mge_runtime_options.log", "mge_attribute.count", "MGE_VALUE_MAP.=", "MGE_DATA_LOSS.="}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
  EXPECT_FALSE(names.count("MGE_VERSION.="));  // changes with each version
  const std::set<std::string> functions(ApplicationAbi().functions.begin(), ApplicationAbi().functions.end());
  EXPECT_GT(functions.size(), 100u);
  EXPECT_TRUE(functions.count("mge_status* mge_runtime_create(const mge_runtime_options* options, mge_runtime** out)"));
  EXPECT_TRUE(functions.count("const char* mge_version(void)"));
}

// Attributes and files travel in arrays that carry their size. Groups of parameters and tokens of batches never grow.
TEST(ApplicationAbi, StructsBeginWithTheirSize) {
  ExpectSizes(ApplicationAbi(), {"mge_text", "mge_context", "mge_context_text", "mge_attribute", "mge_model_file",
                                 "mge_parameter_group", "mge_batch_token"});
}

TEST(PluginAbi, TheDerivedListHasStructsAndEveryKindOfConstant) {
  size_t sized = 0;
  std::set<std::string> names;
  for (const AbiRow& row : PluginAbi().rows) {
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

// Texts, slots, pairs, messages of a transport and the ELF section never grow.
TEST(PluginAbi, StructsBeginWithTheirSize) {
  ExpectSizes(PluginAbi(), {"mge_text", "mge_slot", "mge_in_place", "mge_message", "mge_note_section"});
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
