// SPDX-License-Identifier: Apache-2.0
// Installing and removing backend files through the public interface.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "mge/mge.hpp"

namespace mge {
namespace {

TEST(PublicPlugins, RemovesNothingForANameThatNoBackendCanHave) {
  std::string folder = testing::TempDir() + "mge_public_plugins_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  const std::string file = folder + "/libhelper.so";
  std::ofstream(file) << "no backend";
  RuntimeOptions options;
  options.built_in_plugins = options.environment = false;
  options.settings = {"plugin.path=" + folder};
  for (const char* name : {"", " ", "libhelper.so"}) {
    std::string path;
    Status removed = Plugins::Remove(options, name).MoveTo(path);
    EXPECT_EQ(removed.id(), 201) << "'" << name << "': " << removed.text();
    EXPECT_EQ(path, "") << name;
  }
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace mge
