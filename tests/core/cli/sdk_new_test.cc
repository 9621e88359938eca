// SPDX-License-Identifier: Apache-2.0
// Tests of `mge sdk new`: the files that it writes, and the arguments that it refuses. tests/install builds those files.
#include <cctype>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class SdkNew : public Command {};

TEST_F(SdkNew, WritesTheTemplateUnderTheNewName) {
  Outcome o = Mge("sdk new my_dev project");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("cmake --workflow"));
  EXPECT_THAT(Read("project/CMakeLists.txt"), HasSubstr("mge_backend(NAME my_dev)"));
  EXPECT_THAT(Read("project/settings.h"), HasSubstr("MGE_MY_DEV_DEVICES"));
  EXPECT_THAT(Read("project/settings.h"), HasSubstr("\"my_dev.devices\""));
  EXPECT_THAT(Read("project/plugin.cc"), HasSubstr("kName = \"my_dev\""));
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/project")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    std::string relative = entry.path().lexically_relative(folder_ + "/project");
    EXPECT_TRUE(fs::exists(MGE_SOURCE_DIR "/plugins/null/" + relative)) << relative;
    std::string text = Read(fs::relative(entry.path(), folder_));
    for (size_t at = text.find("null"); at != std::string::npos; at = text.find("null", at + 1)) {
      EXPECT_TRUE(std::isalpha(static_cast<unsigned char>(text[at + 4]))) << relative << ": the old name at " << at;
    }
    EXPECT_EQ(text.find("NULL_"), std::string::npos) << relative;
  }
  for (const auto& entry : fs::recursive_directory_iterator(MGE_SOURCE_DIR "/plugins/null")) {
    files -= entry.is_regular_file();
  }
  EXPECT_EQ(files, 0u) << "as many files as the template has";
}

TEST_F(SdkNew, ReportsInJson) {
  Outcome o = Mge("sdk new mydev here --json");
  ASSERT_EQ(o.code, 0) << o.err;
  json answer = json::parse(o.out);
  EXPECT_EQ(o.out.find("\"schema\""), o.out.find('"')) << "the schema comes first";
  EXPECT_EQ(answer["schema"], "mge.sdk.new/1");
  EXPECT_EQ(answer["name"], "mydev");
  for (const json& file : answer["files"]) EXPECT_TRUE(fs::exists(folder_ + "/here/" + file.get<std::string>())) << file;
}

TEST_F(SdkNew, AcceptsAnEmptyFolderAndCreatesMissingParents) {
  fs::create_directory(folder_ + "/empty");
  EXPECT_EQ(Mge("sdk new mydev empty").code, 0);
  EXPECT_EQ(Mge("sdk new mydev a/b/c").code, 0);
  EXPECT_TRUE(fs::exists(folder_ + "/a/b/c/kernels/relu.cc"));
}

TEST_F(SdkNew, RefusesNamesThatNoDeviceCanHave) {
  for (const char* name : {"2d", "My", "box", "xpu", "host", "gpu", "my-dev", "dev2", "a,b", "_a", "../up", "a",
                           "multithread_dev", "abcdefghijabcdefghijabcdefghijab"}) {
    Outcome o = Mge(std::string("sdk new ") + name + " project");
    EXPECT_EQ(o.code, 2) << name;
    for (const char* part : {"mge: error[E0201]", "what: ", "where:", "fix: "}) EXPECT_THAT(o.err, HasSubstr(part)) << name;
    EXPECT_FALSE(fs::exists(folder_ + "/project")) << name;
  }
}

TEST_F(SdkNew, RefusesTheNameOfAnInstalledBackend) {
  Outcome o = Mge("sdk new cpu project");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("a backend 'cpu' already exists"));
  EXPECT_THAT(o.err, HasSubstr("mge_cpu.so"));
  EXPECT_FALSE(fs::exists(folder_ + "/project"));
}

TEST_F(SdkNew, RefusesAFolderThatIsNotEmptyAndChangesNothing) {
  fs::create_directory(folder_ + "/full");
  std::ofstream(folder_ + "/full/mine") << "precious";
  Outcome o = Mge("sdk new mydev full");
  EXPECT_EQ(o.code, 7);
  for (const char* part : {"mge: error[E0702]", "what: ", "not empty", "where:", "fix: "}) {
    EXPECT_THAT(o.err, HasSubstr(part));
  }
  EXPECT_EQ(Read("full/mine"), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/full"), {}), 1);
  o = Mge("sdk new mydev full/mine --json");
  EXPECT_EQ(o.code, 7);
  EXPECT_EQ(json::parse(o.out)["schema"], "mge.error/1");
}

TEST_F(SdkNew, FailsOnAnUnwritableFolderAndLeavesNoFiles) {
  std::ofstream(folder_ + "/file") << "";
  Outcome o = Mge("sdk new mydev file/below");
  EXPECT_EQ(o.code, 7) << o.err;
  EXPECT_THAT(o.err, HasSubstr("fix: "));
}

TEST_F(SdkNew, NamesMissingAndMisspeltArguments) {
  EXPECT_EQ(Mge("sdk").code, 2);
  Outcome o = Mge("sdk nwe mydev project");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'new'"));
  o = Mge("sdk new mydev");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("DIR"));
}

}  // namespace
}  // namespace mge
