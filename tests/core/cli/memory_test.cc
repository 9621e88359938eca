// SPDX-License-Identifier: Apache-2.0
// The mge command when the system refuses memory (ulimit -v).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class LittleMemory : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge-memory-XXXXXX";
    folder_ = mkdtemp(name);
    ASSERT_EQ(Mge("zoo mobilenetv2 -o model.onnx"), 0) << err_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs `mge ARGS` with at most `kib` KiB of address space (0: unlimited). Returns its exit code.
  int Mge(const std::string& args, int kib = 0) {
    std::string limit = kib ? "ulimit -v " + std::to_string(kib) + " && " : "";
    std::string line = "cd " + folder_ + " && " + limit + "exec timeout 60 " MGE_BINARY_DIR "/bin/mge " + args +
                       " >stdout.txt 2>stderr.txt </dev/null";
    int status = std::system(line.c_str());
    std::ifstream in(folder_ + "/stderr.txt");
    err_.assign(std::istreambuf_iterator<char>(in), {});
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string folder_, err_;
};

TEST_F(LittleMemory, ALimitOneByteBelowThePlansPeakIsRefusedWithTheLargestBuffers) {
  auto limited = [&](const std::string& bytes) {
    return Mge("run model.onnx --device cpu0 --set memory.limit=cpu0=" + bytes);
  };
  ASSERT_EQ(limited("1000"), 6) << err_;
  EXPECT_THAT(err_, AllOf(HasSubstr("error[E0602]"), HasSubstr("the planned peak is"), HasSubstr("the largest are")));
  auto named = [&] {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(err_, match, std::regex("cpu0=([0-9]+)"))) << err_;
    return match.empty() ? 0 : std::stoll(match[1]);
  };
  // With so little memory no constant is folded. The advised limit therefore includes room for them.
  long long refused = 1000, fits = named();
  ASSERT_EQ(limited(std::to_string(fits)), 0) << err_;
  while (fits - refused > 1) {
    const long long middle = refused + (fits - refused) / 2;
    (limited(std::to_string(middle)) == 0 ? fits : refused) = middle;
  }
  EXPECT_EQ(limited(std::to_string(fits - 1)), 6);
  EXPECT_THAT(err_, HasSubstr("the smallest limit that fits is"));
  EXPECT_EQ(named(), fits);
}

// The exit code of the system's loader if the limit is too low to load the program.
constexpr int kCannotBeLoaded = 127;
// That of a program that ends before main(), because the C++ library finds no memory for exceptions.
constexpr int kCannotBeStarted = 134;

TEST_F(LittleMemory, EveryLimitGivesAResultOrATypedErrorOfMemoryOrDevice) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more addresses than any limit leaves";
#endif
  int results = 0, memory = 0;
  for (int kib = 8 << 10; kib <= 4 << 20 && results < 2; kib += kib / 12) {
    // oneDNN reads a null pointer if an allocation fails while it generates code.
    const int code = Mge("run model.onnx --threads 2 --set cpu.onednn=false", kib);
    if (code == kCannotBeLoaded || (code == kCannotBeStarted && memory == 0)) continue;
    ASSERT_THAT(code, AnyOf(0, 5, 6)) << kib << " KiB: " << err_;
    if (code == 6) {
      EXPECT_THAT(err_, HasSubstr("error[E060")) << kib;
    }
    if (code == 5) {
      EXPECT_THAT(err_, AnyOf(HasSubstr("annot allocate memory"), HasSubstr("failed to map"))) << kib;
    }
    memory += code == 6;
    results += code == 0;
  }
  EXPECT_GT(results, 0);
  EXPECT_GT(memory, 0);
}

}  // namespace
}  // namespace mge
