// SPDX-License-Identifier: Apache-2.0
// Tests of `mge sdk test`, the conformance kit as the author of a backend runs it.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class SdkTestCommand : public Command {};

TEST_F(SdkTestCommand, NamesTheMissingKitIfTheTreeHasNone) {
  for (const char* folder : {"bin", "lib"}) fs::create_directory(Path(folder));
  fs::copy_file(MGE_BINARY_DIR "/bin/mge", Path("bin/mge"));
  for (const auto& entry : fs::directory_iterator(MGE_BINARY_DIR "/lib")) {
    if (entry.is_regular_file()) fs::copy_file(entry, Path("lib/" + entry.path().filename().string()));
  }
  Outcome o = Mge("sdk test some.so", "", folder_);
  EXPECT_EQ(o.code, 7);
  EXPECT_THAT(o.err, HasSubstr("/mge-conform cannot be run\n  what:  No such file or directory\n"
                               "  fix:   install all of MGE"));
}

TEST_F(SdkTestCommand, TestsABackendAndWritesAReport) {
  std::string plugin = std::string(MGE_BINARY_DIR) + "/lib/mge/plugins/mge_null.so";
  Outcome o = Mge("sdk test " + plugin + " --quick --json --report there");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  json report = json::parse(o.out);
  EXPECT_TRUE(o.out.starts_with("{\n  \"schema\": \"mge.sdk-test/1\"")) << o.out.substr(0, 80);
  EXPECT_EQ(report["name"], "null");
  EXPECT_EQ(report["counts"]["failed"], 0);
  EXPECT_EQ(json::parse(Read("there/report.json")), report);
  EXPECT_THAT(Read("there/report.md"), HasSubstr("# null: passed"));
  EXPECT_THAT(o.err, HasSubstr("there/report.md"));
}

// A command that runs its arguments with stdout on a full device.
constexpr const char* kFull = R"(sh -c 'exec "$0" "$@" >/dev/full')";
constexpr const char* kClosed = R"(sh -c 'exec "$0" "$@" >&-')";

TEST_F(SdkTestCommand, FailsIfItsReportCannotBeWritten) {
  std::string plugin = std::string(MGE_BINARY_DIR) + "/lib/mge/plugins/mge_null.so";
  for (const char* with : {kFull, kClosed}) {
    for (const char* format : {"", " --json"}) {
      Outcome o = Mge("sdk test " + plugin + " --quick" + format + " --report there", with);
      EXPECT_EQ(o.code, 7) << with << format;
      EXPECT_THAT(o.err, HasSubstr("mge: error[E0702] standard output cannot be written\n")) << with << format;
      EXPECT_EQ(json::parse(Read("there/report.json"))["result"], "passed") << with << format;
    }
    Outcome o = Mge("help run", with);  // its output is longer than a buffer
    EXPECT_EQ(o.code, 7) << with;
    EXPECT_THAT(o.err, HasSubstr("E0702")) << with;
  }
}

TEST_F(SdkTestCommand, RefusesAWrongCommandLineBeforeItTests) {
  std::string plugin = std::string(MGE_BINARY_DIR) + "/lib/mge/plugins/mge_null.so";
  Outcome o = Mge("sdk test " + plugin + " --quick --set null.device=1");
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("the backend null has no setting \"null.device\". Did you mean \"null.devices\"?"));
  o = Mge("sdk test " + plugin + " --quick --only nope");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("--only \"nope\""));
  Write("file", "");
  o = Mge("sdk test " + plugin + " --quick --report file");
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("Not a directory\n  fix:   give --report a folder"));
  o = Mge("sdk test " + plugin + " --quick --report /proc/self");
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, HasSubstr("fix:   give --report a folder"));
}

TEST_F(SdkTestCommand, FailsForAFileThatIsNotABackend) {
  Outcome o = Mge("sdk test " + Write("text.so", "no library") + " --quick");
  EXPECT_EQ(o.code, 5);
  EXPECT_THAT(o.out, HasSubstr("abi.note"));
  o = Mge("sdk test missing.so --json");
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(json::parse(o.out)["schema"], "mge.error/1");
  EXPECT_EQ(Mge("sdk").code, 2);
}

}  // namespace
}  // namespace mge
