// SPDX-License-Identifier: Apache-2.0
// What sessions keep for later runs is no reason to refuse one now: with memory limits, on devices with and without memory of
// their own.
#include <atomic>
#include <regex>
#include <thread>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

// Buffers that are alive together, and no constants.
constexpr char kModel[] = R"(
input x : float32[N,160]
a = Relu(x)
b = Neg(a)
c = Exp(b)
d = Sub(a, c)
e = Mul(b, d)
y = ReduceSum(e) {keepdims=1}
output y
)";

struct Place {
  std::string device, pool;
};

class IdleMemory : public testing::TestWithParam<Place> {
 protected:
  std::shared_ptr<Runtime> Limited(uint64_t bytes) {
    return NewRuntime({{"virtual.devices", "1"},
                       {"memory.limit", GetParam().device + "=" + std::to_string(bytes)},
                       {"memory.pool", GetParam().pool},
                       {"threads", "1"}});
  }
  std::shared_ptr<Session> Session_(std::shared_ptr<Runtime> runtime) {
    auto session = Load(std::move(runtime), kModel, GetParam().device);
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return session.ok() ? *session : nullptr;
  }
  static absl::Status RunBatch(Session& session, int64_t batch) {
    return ResultsOf(session, {Numbers({batch, 160})}).status();
  }
  // What follows these words in the advice.
  static uint64_t Named(const absl::Status& status, const std::string& words) {
    EXPECT_EQ(ErrorId(status), errors::kOverBudget.id) << FormatError(status);
    const std::string fix = PartsOf(status).fix;
    std::smatch match;
    EXPECT_TRUE(std::regex_search(fix, match, std::regex(words + "([0-9]+)"))) << fix;
    return match.empty() ? 0 : std::stoull(match[1]);
  }
  uint64_t LeastFor(int64_t batch) {
    return Named(RunBatch(*Session_(Limited(1000)), batch), "the smallest limit that fits is " + GetParam().device + "=");
  }
};

TEST_P(IdleMemory, OfOneShapeGivesWayToAnotherInTheSmallestLimitOfBoth) {
  const std::shared_ptr<Session> session = Session_(Limited(std::max(LeastFor(256), LeastFor(250))));
  for (int64_t batch : {256, 250, 256, 251, 250, 256}) {
    absl::Status status = RunBatch(*session, batch);
    EXPECT_TRUE(status.ok()) << batch << "\n" << FormatError(status);
  }
}

TEST_P(IdleMemory, OfOneSessionGivesWayToAnother) {
  const std::shared_ptr<Runtime> runtime = Limited(std::max(LeastFor(256), LeastFor(250)));
  const std::shared_ptr<Session> one = Session_(runtime), other = Session_(runtime);
  for (int round = 0; round < 3; ++round) {
    absl::Status first = RunBatch(*one, 256), second = RunBatch(*other, 250);
    EXPECT_TRUE(first.ok()) << FormatError(first);
    EXPECT_TRUE(second.ok()) << FormatError(second);
  }
}

TEST_P(IdleMemory, IsNotCountedInTheAdviceOfARefusal) {
  const std::shared_ptr<Session> session = Session_(Limited(LeastFor(256)));
  const absl::Status fresh = RunBatch(*session, 1000);
  const uint64_t batch = Named(fresh, "the largest batch that fits is ");
  EXPECT_GE(batch, 256u);
  EXPECT_TRUE(RunBatch(*session, static_cast<int64_t>(batch)).ok());
  EXPECT_TRUE(RunBatch(*session, 200).ok());
  EXPECT_EQ(FormatError(RunBatch(*session, 1000)), FormatError(fresh));
  EXPECT_EQ(ErrorId(RunBatch(*session, static_cast<int64_t>(batch) + 1)), errors::kOverBudget.id);
  EXPECT_TRUE(RunBatch(*session, static_cast<int64_t>(batch)).ok());
}

TEST_P(IdleMemory, GivesWayToATensorOfTheCallers) {
  if (GetParam().device != "cpu0") GTEST_SKIP() << "its memory is not for tensors of the host";
  const std::shared_ptr<Session> session = Session_(Limited(LeastFor(256)));
  ASSERT_TRUE(RunBatch(*session, 256).ok());
  auto most = static_cast<int64_t>(session->device().budget().limit());
  auto tensor = Tensor::Create(DType::kU8, {most}, session->device().host_allocator());
  ASSERT_TRUE(tensor.ok()) << FormatError(tensor.status());
  EXPECT_EQ(ErrorId(RunBatch(*session, 256)), errors::kOverBudget.id);
  tensor = Tensor();
  EXPECT_TRUE(RunBatch(*session, 256).ok());
}

TEST_P(IdleMemory, IsTakenFromManyThreadsWhileOthersRun) {
  constexpr int kThreads = 4, kRuns = 25;
  const std::shared_ptr<Runtime> runtime = Limited(kThreads * std::max(LeastFor(256), LeastFor(250)) - 1000);
  const std::shared_ptr<Session> sessions[] = {Session_(runtime), Session_(runtime)};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const int64_t batch = 250 + (t * 5 + i * 3) % 7;
        auto got = ResultsOf(*sessions[t % 2], {Numbers({batch, 160})});
        if (got.ok()) continue;
        EXPECT_EQ(ErrorId(got.status()), errors::kOverBudget.id) << FormatError(got.status());
        ++refused;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_LT(refused, kThreads * kRuns / 2);  // only where all were at it at once
  for (const auto& session : sessions) EXPECT_TRUE(RunBatch(*session, 256).ok());
}

std::vector<Place> Places() {
  std::vector<Place> places;
  for (const char* device : {"cpu0", "virtual0"}) {
    for (const char* pool : {"naive", "round", "unpooled", "growing"}) places.push_back({device, pool});
  }
  return places;
}

INSTANTIATE_TEST_SUITE_P(Pools, IdleMemory, testing::ValuesIn(Places()),
                         [](const auto& info) { return info.param.device + "_" + info.param.pool; });

}  // namespace
}  // namespace mge
