// SPDX-License-Identifier: Apache-2.0
// A file of chosen kernels that several processes write.
#include "core/plan/kernels/selection.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class SelectionFiles : public testing::Test {
 protected:
  SelectionFiles() {
    directory_ = testing::TempDir() + "mge_selection_XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/kernels.toml";
  }
  ~SelectionFiles() override { std::filesystem::remove_all(directory_); }

  std::shared_ptr<SelectionRecorder> Recorder() const {
    auto made = SelectionRecorder::Create(path_);
    EXPECT_TRUE(made.ok()) << FormatError(made.status());
    return *made;
  }
  std::map<std::string, std::string> Kernels() const {
    auto read = SelectionFile::Read(path_);
    EXPECT_TRUE(read.ok()) << FormatError(read.status());
    return read.ok() ? (*read)->kernels() : std::map<std::string, std::string>();
  }

  std::string directory_, path_;
};

TEST_F(SelectionFiles, HoldsTheChoicesOfTwoConcurrentWriters) {
  auto first = Recorder(), second = Recorder();
  first->Note("a", "fast", "Relu", "measured");
  second->Note("b", "slow", "Neg", "measured");
  EXPECT_TRUE(first->Flush(nullptr).ok());
  EXPECT_TRUE(second->Flush(nullptr).ok());
  EXPECT_THAT(Kernels(), ElementsAre(Pair("a", "fast"), Pair("b", "slow")));
  second->Note("a", "faster", "Relu", "measured");
  second->Forget("b");
  EXPECT_TRUE(second->Flush(nullptr).ok());
  EXPECT_THAT(Kernels(), ElementsAre(Pair("a", "faster")));
}

TEST_F(SelectionFiles, LosesNothingIfProcessesWriteConcurrently) {
  constexpr int kProcesses = 6, kEach = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = fork();
    if (child == 0) {
      auto recorder = Recorder();
      for (int i = 0; i < kEach; ++i) {
        recorder->Note(fmt::format("k{}-{}", p, i), "fast", "Relu", "measured");
        if (!recorder->Flush(nullptr).ok()) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Kernels().size(), static_cast<size_t>(kProcesses * kEach));
}

TEST_F(SelectionFiles, DoesNotReplaceAFileOfAnotherKindCreatedMeanwhile) {
  auto recorder = Recorder();
  std::ofstream(path_) << "what I wrote in three weeks\n";
  EXPECT_THAT(FormatError(recorder->Flush(nullptr)), HasSubstr("it is not overwritten"));
}

TEST_F(SelectionFiles, IsNotWaitedForBeyondTheTimeLimitOfTheRun) {
  auto recorder = Recorder();
  Fd held(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  StopControl stop;
  stop.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(ErrorId(recorder->Flush(&stop)), errors::kTimeout.id);
  held = Fd();
  EXPECT_TRUE(recorder->Flush(nullptr).ok());
  EXPECT_TRUE(Kernels().empty());
}

}  // namespace
}  // namespace mge
