// SPDX-License-Identifier: Apache-2.0
// ONNX's backend tests as a user runs them: `mge check` on every device that this machine always has.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

constexpr const char* kData = "/usr/share/libonnx-testdata/data";

int CountGaps() {
  std::ifstream in(MGE_SOURCE_DIR "/core/cli/onnx_gaps.txt");
  int count = 0;
  for (std::string line; std::getline(in, line);) count += !line.empty() && line[0] != '#';
  return count;
}

class MgeCheck : public testing::TestWithParam<const char*> {};

TEST_P(MgeCheck, FailsNoTestOfOnnxAndKnowsEveryGap) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData << " (Debian's libonnx-testdata)";
  std::string line = std::string("env -u MGE_DEFAULT_DEVICE " MGE_BINARY_DIR "/bin/mge check --json -q --device ") + GetParam() + " " + kData;
  std::FILE* pipe = popen(line.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string out;
  std::array<char, 65536> part;
  while (size_t n = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 0);
  nlohmann::json report = nlohmann::json::parse(out);
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["unsupported"].get<int>(), CountGaps());
  EXPECT_GT(report["passed"], 1000);
  for (const auto& c : report["cases"]) EXPECT_NE(c["status"], "failed") << c["name"] << ": " << c["reason"];
}

INSTANTIATE_TEST_SUITE_P(OnnxSuite, MgeCheck, testing::Values("cpu0", "host"));

}  // namespace
}  // namespace mge
