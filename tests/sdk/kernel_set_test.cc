// SPDX-License-Identifier: Apache-2.0
// The version of a backend's kernels, computed from their sources by mge_backend() of CMake.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class KernelSet : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "mge_kernel_set_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Write("relu.cc", "a kernel");
    Write("neg.cc", "another kernel");
  }
  ~KernelSet() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  // Returns the header for these files.
  std::string HeaderOf(const std::vector<std::string>& files) const {
    const std::string root = folder_.string();
    std::string list;
    for (const std::string& file : files) list += (list.empty() ? "" : ";") + root + "/" + file;
    const std::string command = "cmake -DROOT=" + root + " '-DFILES=" + list + "' -DOUTPUT=" + root +
                                "/set.h -P " MGE_SOURCE_DIR "/sdk/cmake/mge_kernel_set.cmake";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return Read(folder_ / "set.h");
  }
  fs::path folder_;
};

TEST_F(KernelSet, ChangesWithEachSource) {
  const std::string before = HeaderOf({"relu.cc", "neg.cc"});
  EXPECT_NE(before.find("#define MGE_KERNEL_SET \""), std::string::npos) << before;
  EXPECT_EQ(HeaderOf({"neg.cc", "relu.cc"}), before);  // in any order
  EXPECT_NE(HeaderOf({"relu.cc"}), before);
  Write("neg.cc", "a faster kernel");
  EXPECT_NE(HeaderOf({"relu.cc", "neg.cc"}), before);
  Write("neg.cc", "another kernel");
  EXPECT_EQ(HeaderOf({"relu.cc", "neg.cc"}), before);
  fs::rename(folder_ / "neg.cc", folder_ / "abs.cc");
  EXPECT_NE(HeaderOf({"relu.cc", "abs.cc"}), before);
}

TEST_F(KernelSet, DoesNotDependOnThePlaceOfTheSources) {
  const std::string before = HeaderOf({"relu.cc", "neg.cc"});
  const fs::path moved = folder_.string() + "_moved";
  fs::rename(folder_, moved);
  folder_ = moved;
  EXPECT_EQ(HeaderOf({"relu.cc", "neg.cc"}), before);
}

}  // namespace
