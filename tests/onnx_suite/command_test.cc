// SPDX-License-Identifier: Apache-2.0
// ONNX's backend tests run with `mge check`, on every device that is always present.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

constexpr const char* kData = "/usr/share/libonnx-testdata/data";

// Counts the gaps of the tests in kData: all but those of another version of ONNX.
int CountGaps() {
  std::ifstream in(MGE_SOURCE_DIR "/core/cli/onnx_gaps.txt");
  int count = 0;
  for (std::string line; std::getline(in, line);) count += !line.empty() && line[0] != '#' && !line.starts_with("onnx-");
  return count;
}

// Runs `mge check` over a folder's tests with these environment variables. Returns the report.
nlohmann::json Check(const std::string& device, const std::string& variables, int exit_code,
                     const std::string& folder = kData) {
  std::string line = "env -u MGE_DEFAULT_DEVICE " + variables + " " MGE_BINARY_DIR "/bin/mge check --json -q --device " +
                     device + " " + folder;
  std::FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return {};
  std::string out;
  std::array<char, 65536> part;
  while (size_t n = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), exit_code);
  return nlohmann::json::parse(out);
}

nlohmann::json CaseOf(const nlohmann::json& report, const std::string& name) {
  for (const auto& c : report["cases"]) {
    if (c["name"] == name) return c;
  }
  return {{"steps_elsewhere", "there is no such case"}};
}

struct Where {
  std::string device;
  std::string variables;
  int on_device;  // the least number of cases whose steps all run there
};
void PrintTo(const Where& where, std::ostream* out) { *out << where.device << " " << where.variables; }

class MgeCheck : public testing::TestWithParam<Where> {};

TEST_P(MgeCheck, PassesAllTestsOfOnnxExceptListedGaps) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData << " (Debian's libonnx-testdata)";
  for (const char* driver : {"cuda", "rocm"}) {  // those that a toolkit may be missing for
    if (GetParam().device != driver + std::string("0")) continue;
    const std::string file = MGE_BINARY_DIR "/lib/mge/plugins/mge_" + std::string(driver) + ".so";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
  }
  nlohmann::json report = Check(GetParam().device, GetParam().variables, 0);
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["unsupported"].get<int>(), CountGaps());
  EXPECT_GT(report["passed"], 1000);
  EXPECT_GE(report["on_device"], GetParam().on_device);
  // GPUs have no kernel for it.
  if (GetParam().on_device < 1000) {
    EXPECT_GT(CaseOf(report, "test_nonmaxsuppression_single_box")["steps_elsewhere"], 0);
  }
  for (const auto& c : report["cases"]) EXPECT_NE(c["status"], "failed") << c["name"] << ": " << c["reason"];
}

INSTANTIATE_TEST_SUITE_P(
    OnnxSuite, MgeCheck,
    testing::Values(Where{"cpu0", "", 1000}, Where{"host", "", 1000},
                    Where{"cuda0", "MGE_CUDA_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libcuda.so.1", 740},
                    Where{"rocm0", "MGE_ROCM_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5", 740},
                    Where{"virtual0", "MGE_VIRTUAL_DEVICES=1", 740},
                    Where{"virtual0",
                          "MGE_VIRTUAL_DEVICES=1 MGE_VIRTUAL_POISON=1 MGE_VIRTUAL_WARP=64 MGE_VIRTUAL_THREAD_ORDER=shuffled",
                          740}));

// The tests of newer versions of ONNX, from sample.tar.gz.
TEST(MgeCheckSample, PassesOnEveryDevice) {
  const std::filesystem::path folder = testing::TempDir() + "/mge_onnx_sample_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string unpack = "tar -xzf " MGE_SOURCE_DIR "/tests/onnx_suite/sample.tar.gz -C " + folder.string();
  ASSERT_EQ(std::system(unpack.c_str()), 0);
  for (const char* device : {"host", "cpu0", "virtual0"}) {
    nlohmann::json report = Check(device, "MGE_VIRTUAL_DEVICES=1", 0, folder.string());
    EXPECT_GT(report["passed"], 180) << device;
    EXPECT_EQ(report["unsupported"], 0) << device;
    for (const auto& c : report["cases"])
      EXPECT_EQ(c["status"], "passed") << device << " " << c["name"] << ": " << c["reason"];
  }
  std::filesystem::remove_all(folder);
}

// Tests on virtual0 run the GPU kernels. If all of these kernels fail, tests on virtual0 must fail.
TEST(MgeCheckVirtual, RunsKernelsInHundredsOfTests) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData << " (Debian's libonnx-testdata)";
  nlohmann::json report = Check("virtual0", "MGE_VIRTUAL_DEVICES=1 MGE_VIRTUAL_FAULT=kernel@1+=fail", 8);
  int hit = 0;
  for (const auto& c : report["cases"]) {
    if (c["status"] != "failed") continue;
    ++hit;
    EXPECT_NE(c["reason"].get<std::string>().find("kernel@1+=fail"), std::string::npos) << c["name"] << ": " << c["reason"];
  }
  EXPECT_GE(hit, 500);
}

}  // namespace
}  // namespace mge
