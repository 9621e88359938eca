// SPDX-License-Identifier: Apache-2.0
// mge.AllReduce and mge.Broadcast between sessions on virtual GPUs, in one process and in two.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/plugins/virtual/sessions/virtual_session.h"
#include "tests/support/ranks.h"

namespace mge {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kIdVariable[] = "MGE_TEST_COLLECTIVE_ID";

// Two ranks on two devices of this process.
class TwoRanks : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = NewRuntime({{"virtual.devices", "2"}, {"virtual.poison", "1"}});
    ASSERT_NE(runtime_, nullptr);
  }

  void LoadBoth(std::string_view first, std::string_view second, const std::string& timeout = "20") {
    const std::string id = NewCollectiveId(*runtime_, "virtual0");
    for (int rank = 0; rank < 2; ++rank) {
      auto session = LoadRank(runtime_, rank ? second : first, rank ? "virtual1" : "virtual0", id, rank, timeout);
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      sessions_[rank] = *session;
    }
  }

  // Runs both sessions at the same time.
  void Run(const std::vector<HostValue>& first, const std::vector<HostValue>& second) {
    std::thread other([&] { results_[1] = ResultsOf(*sessions_[1], second); });
    results_[0] = ResultsOf(*sessions_[0], first);
    other.join();
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> sessions_[2];
  absl::StatusOr<std::vector<float>> results_[2];
};

TEST_F(TwoRanks, ReduceOverBothDevices) {
  LoadBoth(kSumAndMax, kSumAndMax);
  for (float round : {0.f, 1.f, 2.f}) {
    Run({Vector({1 + round, -2, 3})}, {Vector({10, 20, -30 - round})});
    for (const auto& r : results_) {
      ASSERT_TRUE(r.ok()) << FormatError(r.status());
      EXPECT_THAT(*r, ElementsAre(-11 - round, -20, -3, 10, 20, 3));
    }
  }
}

TEST_F(TwoRanks, ReduceTensorsLargerThanOnePieceOfSharedMemory) {
  LoadBoth(kSumAndMax, kSumAndMax);
  constexpr int64_t kElements = 300'001;
  Run({Numbers({kElements}, 1)}, {Numbers({kElements}, 2)});
  ASSERT_TRUE(results_[0].ok()) << FormatError(results_[0].status());
  ASSERT_TRUE(results_[1].ok()) << FormatError(results_[1].status());
  EXPECT_EQ(*results_[0], *results_[1]);
  const auto a = Numbers({kElements}, 1), b = Numbers({kElements}, 2);
  for (size_t i : {size_t{0}, size_t{65'536}, size_t{131'072}, size_t{300'000}}) {
    const float x = a.tensor.Data<float>()[i], y = b.tensor.Data<float>()[i];
    EXPECT_EQ((*results_[0])[i], -(std::max(x, 0.f) + std::max(y, 0.f))) << i;
    EXPECT_EQ((*results_[0])[kElements + i], std::max(x, y)) << i;
  }
}

TEST_F(TwoRanks, ReduceSeveralTensorsInOneOperator) {
  constexpr std::string_view kGraph = R"(input x : float32[2]
input z : float32[3]
const c = float32[2]<1, 2>
a, b, d = mge::AllReduce(x, z, c) {reduction="product"}
output a
output b
output d
)";
  LoadBoth(kGraph, kGraph);
  Run({Vector({1, 2}), Vector({3, 4, 5})}, {Vector({2, 2}), Vector({-1, 0, 1})});
  for (const auto& r : results_) {
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(2, 4, -3, 0, 5, 1, 4));
  }
}

TEST_F(TwoRanks, BroadcastFromTheRoot) {
  constexpr std::string_view kGraph = R"(input x : float32[3]
y = mge::Broadcast(x) {root=1}
output y
)";
  LoadBoth(kGraph, kGraph);
  Run({Vector({1, 2, 3})}, {Vector({4, 5, 6})});
  for (const auto& r : results_) {
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(4, 5, 6));
  }
}

TEST_F(TwoRanks, RanksWithDifferentTensorsFail) {
  LoadBoth("input x : float32[N]\ny = mge::AllReduce(x)\noutput y\n",
           "input x : float32[N]\ny = mge::AllReduce(x)\noutput y\n");
  Run({Vector({1, 2})}, {Vector({1, 2, 3})});
  for (const auto& r : results_) {
    ASSERT_FALSE(r.ok());
    EXPECT_THAT(FormatError(r.status()), AnyOf(HasSubstr("another type or number of elements"), HasSubstr("has failed")));
  }
}

TEST_F(TwoRanks, ARankThatNeverComesIsAnErrorWithinTheTimeout) {
  auto session = LoadRank(runtime_, kSumAndMax, "virtual0", NewCollectiveId(*runtime_, "virtual0"), 0, "0.2");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  const auto begin = std::chrono::steady_clock::now();
  auto r = ResultsOf(**session, {Vector({1})});
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(FormatError(r.status()), HasSubstr("rank 1 of 2 did not join within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(TwoRanks, ACancelledRunFailsTheOtherRank) {
  LoadBoth(kSumAndMax, kSumAndMax, "60");
  Run({Vector({1})}, {Vector({1})});
  ASSERT_TRUE(results_[0].ok() && results_[1].ok());
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  auto late = ResultsOf(*sessions_[0], {Vector({1})}, control);  // the other rank does not run
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(ErrorId(late.status()), errors::kTimeout.id) << FormatError(late.status());
  auto other = ResultsOf(*sessions_[1], {Vector({1})});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(FormatError(other.status()), HasSubstr("rank 0 of 2 has failed"));
  auto again = ResultsOf(*sessions_[0], {Vector({1})});
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(FormatError(again.status()), HasSubstr("has left its group of ranks"));
}

TEST_F(TwoRanks, AWrongPlaceInTheGroupIsRefused) {
  const std::string id = NewCollectiveId(*runtime_, "virtual0");
  auto wrong = [&](const std::string& device, const std::string& of, int rank) {
    auto session = LoadRank(runtime_, kSumAndMax, device, of, rank, "0.2");
    absl::Status status = session.status();
    if (session.ok()) status = ResultsOf(**session, {Vector({1})}).status();
    EXPECT_FALSE(status.ok());
    return FormatError(status);
  };
  EXPECT_THAT(wrong("virtual0", id, 2), HasSubstr("collective.rank is 2, but the group has 2 ranks"));
  EXPECT_THAT(wrong("virtual0", "abc", 0), HasSubstr("it has 3 characters; expected 256 digits"));
  EXPECT_THAT(wrong("virtual0", std::string(256, '0'), 0), HasSubstr("not one of this backend"));
  EXPECT_THAT(wrong("cpu0", id, 0), HasSubstr("no backend of the session's devices has collective operations"));
}

TEST_F(TwoRanks, OneRankAloneKeepsItsTensors) {
  for (const char* device : {"cpu0", "virtual0"}) {
    auto session = Load(runtime_, kSumAndMax, device);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    auto r = ResultsOf(**session, {Vector({1, -2})});
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(-1, 0, 1, -2)) << device;
  }
}

// Starts this program again as rank 1 of the group. Returns its process.
pid_t StartOther(const std::string& id) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kIdVariable, id.c_str(), 1);
  execl("/proc/self/exe", "rank1", "--gtest_filter=OtherProcess.DISABLED_Rank1", "--gtest_also_run_disabled_tests",
        static_cast<char*>(nullptr));
  _exit(127);
}

// Rank 1: runs twice, then is killed.
TEST(OtherProcess, DISABLED_Rank1) {
  const char* id = std::getenv(kIdVariable);
  ASSERT_NE(id, nullptr);
  alarm(60);
  auto session = LoadRank(NewRuntime({{"virtual.devices", "2"}}), kSumAndMax, "virtual1", id, 1);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (float round : {0.f, 1.f}) {
    auto r = ResultsOf(**session, {Vector({10, 20, -30 - round})});
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    EXPECT_THAT(*r, ElementsAre(-11, -20, -3, 10, 20, 3));
  }
  if (!testing::Test::HasFailure()) raise(SIGKILL);
}

TEST_F(TwoRanks, TwoProcessesReduceAndADeadOneIsAnErrorWithinTheTimeout) {
  const std::string id = NewCollectiveId(*runtime_, "virtual0");
  const pid_t other = StartOther(id);
  ASSERT_GT(other, 0);
  auto session = LoadRank(runtime_, kSumAndMax, "virtual0", id, 0, "2");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  absl::StatusOr<std::vector<float>> r;
  for (int round = 0; round < 2; ++round) {
    r = ResultsOf(**session, {Vector({1, -2, 3})});
    if (!r.ok()) break;
    EXPECT_THAT(*r, ElementsAre(-11, -20, -3, 10, 20, 3));
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the other process failed: " << status;
  ASSERT_TRUE(r.ok()) << FormatError(r.status());

  const auto begin = std::chrono::steady_clock::now();
  r = ResultsOf(**session, {Vector({1, -2, 3})});
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(FormatError(r.status()), HasSubstr("rank 1 of 2 did not take part within 2000 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  // The process goes on.
  auto alone = Load(runtime_, "input x : float32[2]\ny = Neg(x)\noutput y\n", "virtual0");
  ASSERT_TRUE(alone.ok()) << FormatError(alone.status());
  auto good = ResultsOf(**alone, {Vector({1, 2})});
  ASSERT_TRUE(good.ok()) << FormatError(good.status());
  EXPECT_THAT(*good, ElementsAre(-1, -2));
}

}  // namespace
}  // namespace mge
