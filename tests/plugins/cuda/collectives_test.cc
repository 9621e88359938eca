// SPDX-License-Identifier: Apache-2.0
// Collective operators over NCCL: a library with its interface, and GPUs in software.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"
#include "tests/support/ranks.h"
#include "tests/support/trainer.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kEmulating[] = MGE_BINARY_DIR "/tests/cuda/libnccl.so";
constexpr char kIdVariable[] = "MGE_TEST_COLLECTIVE_ID";

std::shared_ptr<Runtime> NcclRuntime() { return CudaRuntime({{"cuda.nccl", kEmulating}}); }

// Two ranks on two devices of this process.
class CudaRanks : public testing::Test {
 protected:
  CudaRanks() : runtime_(NcclRuntime()) {}
  void LoadBoth(const std::string& timeout = "20") {
    const std::string id = NewCollectiveId(*runtime_, "cuda0");
    for (int rank = 0; rank < 2; ++rank) {
      auto session = LoadRank(runtime_, kSumAndMax, rank ? "cuda1" : "cuda0", id, rank, timeout);
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      sessions_[rank] = *session;
    }
  }
  void RunBoth(const std::vector<HostValue>& first, const std::vector<HostValue>& second) {
    std::thread other([&] { results_[1] = ResultsOf(*sessions_[1], second); });
    results_[0] = ResultsOf(*sessions_[0], first);
    other.join();
  }

  SoftwareDriver driver_{2};
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> sessions_[2];
  absl::StatusOr<std::vector<float>> results_[2];
};

TEST_F(CudaRanks, ReduceOverBothDevices) {
  LoadBoth();
  for (float round : {0.f, 1.f, 2.f}) {
    RunBoth({Vector({1 + round, -2, 3})}, {Vector({10, 20, -30 - round})});
    for (const auto& r : results_) {
      ASSERT_TRUE(r.ok()) << FormatError(r.status());
      EXPECT_THAT(*r, ElementsAre(-11 - round, -20, -3, 10, 20, 3));
    }
  }
}

// By NCCL, along trees of links, and through the host without NCCL.
TEST_F(CudaRanks, TrainingOnReplicasGivesTheWeightsOfOneDevice) {
  const std::vector<HostValue> batch = {Waves({5, 3}, 1), Waves({5, 2}, 2)};
  for (const Assignment& setting :
       {Assignment{"cuda.nccl", kEmulating}, Assignment{"kvstore.tree", "1"}, Assignment{"cuda.nccl", "/none/libnccl.so"}}) {
    const auto runtime = CudaRuntime({setting});
    const uint64_t peer_copies = driver_.Calls("cuMemcpyPeerAsync");
    Trainer one(runtime, kNetwork, {.loss = "mse"}, "host", false),
        many(runtime, kNetwork, {.loss = "mse"}, "cuda0,cuda1", true);
    ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
    for (int step = 0; step < 3; ++step) {
      const auto expected = one.Step(batch, 0.1f), got = many.Step(batch, 0.1f);
      ASSERT_TRUE(got.ok()) << FormatError(got.status());
      EXPECT_THAT(*got, testing::Pointwise(testing::FloatNear(1e-5f), *expected)) << setting.name;
    }
    EXPECT_EQ(driver_.Calls("cuMemcpyPeerAsync") > peer_copies, setting.name == "kvstore.tree");
  }
}

TEST_F(CudaRanks, ARankThatNeverComesIsAnErrorWithinTheTimeout) {
  auto session = LoadRank(runtime_, kSumAndMax, "cuda0", NewCollectiveId(*runtime_, "cuda0"), 0, "0.2");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  const auto begin = std::chrono::steady_clock::now();
  const auto r = ResultsOf(**session, {Vector({1})});
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(FormatError(r.status()), HasSubstr("a rank of the group does not take part within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(CudaRanks, ACancelledRunFailsTheOtherRankAndTheDevicesGoOn) {
  LoadBoth("60");
  RunBoth({Vector({1})}, {Vector({1})});
  ASSERT_TRUE(results_[0].ok() && results_[1].ok());
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const auto late = ResultsOf(*sessions_[0], {Vector({1})}, control);  // the other rank does not run
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(ErrorId(late.status()), errors::kTimeout.id) << FormatError(late.status());
  const auto other = ResultsOf(*sessions_[1], {Vector({1})});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(FormatError(other.status()), HasSubstr("remote process exited"));
  for (auto& s : sessions_) s = nullptr;
  LoadBoth();
  RunBoth({Vector({1})}, {Vector({2})});
  EXPECT_TRUE(results_[0].ok()) << FormatError(results_[0].status());
}

// Starts this program again as rank 1 of the group. Returns its process.
pid_t StartOther(const std::string& id) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kIdVariable, id.c_str(), 1);
  execl("/proc/self/exe", "rank1", "--gtest_filter=OtherCudaProcess.DISABLED_Rank1", "--gtest_also_run_disabled_tests",
        static_cast<char*>(nullptr));
  _exit(127);
}

// Rank 1: runs twice, then is killed.
TEST(OtherCudaProcess, DISABLED_Rank1) {
  const char* id = std::getenv(kIdVariable);
  ASSERT_NE(id, nullptr);
  alarm(60);
  const SoftwareDriver driver(2);
  auto session = LoadRank(NcclRuntime(), kSumAndMax, "cuda1", id, 1);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (float round : {0.f, 1.f}) {
    const auto r = ResultsOf(**session, {Vector({10, 20, -30 - round})});
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(-11, -20, -3, 10, 20, 3));
  }
  if (!testing::Test::HasFailure()) raise(SIGKILL);
}

TEST_F(CudaRanks, TwoProcessesReduceAndADeadOneIsAnErrorWithinTheTimeout) {
  const std::string id = NewCollectiveId(*runtime_, "cuda0");
  const pid_t other = StartOther(id);
  ASSERT_GT(other, 0);
  auto session = LoadRank(runtime_, kSumAndMax, "cuda0", id, 0, "3");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int round = 0; round < 2; ++round) {
    const auto r = ResultsOf(**session, {Vector({1, -2, 3})});
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(-11, -20, -3, 10, 20, 3));
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the other process failed: " << status;
  const auto begin = std::chrono::steady_clock::now();
  const auto dead = ResultsOf(**session, {Vector({1, -2, 3})});
  ASSERT_FALSE(dead.ok());
  EXPECT_THAT(FormatError(dead.status()), HasSubstr("does not take part within 3000 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

class CudaCollectives : public Command {};

TEST_F(CudaCollectives, WithoutNcclTheErrorSaysWhatToInstall) {
  for (const auto& [library, why] :
       {std::pair("/nowhere/libnccl.so.2",
                  "NCCL cannot be used: /nowhere/libnccl.so.2: cannot open shared object file: No such "
                  "file or directory; install libnccl2, or set cuda.nccl to its path"),
        {"off", "NCCL is switched off (cuda.nccl=off)"}}) {
    const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so --only collective",
                          std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NCCL=" + library);
    EXPECT_THAT(o.out + o.err, HasSubstr(why)) << o.code;
  }
}

TEST_F(CudaCollectives, PassTheConformanceKit) {
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so --only collective",
                        std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NCCL=" + kEmulating);
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

}  // namespace
}  // namespace mge
