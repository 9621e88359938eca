// SPDX-License-Identifier: Apache-2.0
// Tests of `mge plugins paths`, `verify`, `install` and `remove`, with good and bad files. These commands open no backend.
#include <gmock/gmock.h>

#include "tests/hostile/hostile.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PluginsCommand, ListsTheDirectoriesInOrderAndMarksWritableOnes) {
  HostileFolder folder;
  Outcome o = folder.Mge("plugins paths --json", "MGE_PLUGIN_PATH=" + folder.path() + ":/no/such/folder");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.json()["schema"], "mge.plugin_paths/1");
  Json rows = o.json()["directories"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["path"], folder.path());
  EXPECT_EQ(rows[0]["writable"], true);
  EXPECT_EQ(rows[1]["usable"], false);
  EXPECT_THAT(rows[1]["reason"].get<std::string>(), HasSubstr("does not exist"));
  EXPECT_EQ(rows[2]["origin"], "built-in");
  EXPECT_THAT(folder.Mge("plugins paths").out, HasSubstr(folder.path() + " (environment MGE_PLUGIN_PATH): can be written"));
}

TEST(PluginsCommand, VerifiesInstallsAndRemovesWithoutOpening) {
  HostileFolder folder;
  PluginFolder source;
  // This backend would crash the process that opens it.
  source.Write("mge_start_abort.so", HostileBytes("start_abort"));
  std::string file = source.At("mge_start_abort.so");
  Outcome verified = folder.Mge("plugins verify --json " + file);
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_EQ(verified.json()["schema"], "mge.plugin_file/1");
  EXPECT_EQ(verified.json()["verdict"], "accepted");
  EXPECT_EQ(verified.json()["name"], "start_abort");
  Outcome installed = folder.Mge("plugins install --json " + file);
  ASSERT_EQ(installed.code, 0) << installed.err;
  EXPECT_EQ(installed.json()["path"], folder.At("mge_start_abort.so"));
  EXPECT_TRUE(std::filesystem::exists(folder.At("mge_start_abort.so")));
  Outcome removed = folder.Mge("plugins remove start_abort");
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_FALSE(std::filesystem::exists(folder.At("mge_start_abort.so")));
  EXPECT_EQ(folder.Mge("plugins remove start_abort").code, 5);
}

TEST(PluginsCommand, RemovesNothingForAnEmptyName) {
  HostileFolder folder;
  folder.Write("libhelper.so", ReadAll(MGE_BINARY_DIR "/tests/gone/libmge_test_gone.so"));
  EXPECT_EQ(folder.Mge("plugins remove ''").code, 2);
  Outcome none = folder.Mge("plugins remove ..");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("'..' is not the name of a backend"));
  EXPECT_TRUE(std::filesystem::exists(folder.At("libhelper.so")));
}

TEST(PluginsCommand, ASecondExportedSymbolIsAWarning) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  Outcome verified = folder.Mge("plugins verify --json " + folder.At("mge_quiet.so"));
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.json()["warning"].get<std::string>(),
              AllOf(HasSubstr("besides mge_plugin_query: "), HasSubstr("mge_test_own_address")));
  for (const char* command : {"plugins", "doctor"}) {
    EXPECT_THAT(folder.Mge(command).out, HasSubstr("warn:  it exports ")) << command;
    Outcome all = folder.Mge(std::string(command) + " --json");
    Json rows = all.json()[command[0] == 'd' ? "plugins" : "files"];
    EXPECT_NE(RowOf(rows, "quiet")["warning"], "") << command;
    EXPECT_EQ(RowOf(rows, "null")["warning"], "") << command;
  }
}

TEST(PluginsCommand, NamesTheReasonAndTheFixForARefusedFile) {
  HostileFolder folder;
  PluginFolder source;
  source.Write("mge_text.so", "no library");
  source.Write("mge_old.so", WithNote(HostileBytes("quiet"), [](mge_note& n) { n.abi_major += 1; }));
  Outcome text = folder.Mge("plugins verify " + source.At("mge_text.so"));
  EXPECT_EQ(text.code, 5);
  EXPECT_THAT(text.out, HasSubstr("not an ELF file"));
  EXPECT_EQ(folder.Mge("plugins verify " + source.At("absent.so")).code, 7);
  EXPECT_EQ(folder.Mge("plugins install " + source.At("mge_text.so")).code, 5);
  Outcome old = folder.Mge("plugins install --json " + source.At("mge_old.so"));
  EXPECT_EQ(old.code, 10);
  EXPECT_EQ(old.json()["schema"], "mge.error/1");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(folder.Mge("plugins frobnicate").code, 2);
}

TEST(PluginsCommand, TheListOfAllowedFilesAppliesToRuntimesAndInstallation) {
  HostileFolder folder;
  PluginFolder source;
  folder.AddHostile("quiet");
  source.Write("mge_other.so", HostileBytes("other"));
  std::string list = source.Write("allowed", "# nothing yet\n");
  source.Mode("allowed", 0644);
  std::string env = "MGE_PLUGIN_ALLOW=" + list;
  Outcome none = folder.Mge("plugins --json", env);
  ASSERT_EQ(none.code, 0) << none.err;
  const Json refused = none.json();
  EXPECT_GE(refused["files"].size(), 2u);
  for (const Json& row : refused["files"]) EXPECT_EQ(row["code"], "not_allowed") << row;
  EXPECT_EQ(folder.Mge("plugins install " + source.At("mge_other.so"), env).code, 5);
  ASSERT_EQ(std::system(("sha256sum " + folder.At("mge_quiet.so") + " >> " + list).c_str()), 0);
  Outcome one = folder.Mge("plugins --json", env);
  EXPECT_EQ(RowOf(one.json()["files"], "quiet")["verdict"], "accepted");
  EXPECT_EQ(RowOf(one.json()["files"], "cpu")["code"], "not_allowed");
  Outcome missing = folder.Mge("plugins", "MGE_PLUGIN_ALLOW=/no/such/list");
  EXPECT_EQ(missing.code, 7) << missing.err;
  source.Write("broken", "this is no list\n");
  EXPECT_EQ(folder.Mge("plugins", "MGE_PLUGIN_ALLOW=" + source.At("broken")).code, 2);
}

}  // namespace
}  // namespace mge
