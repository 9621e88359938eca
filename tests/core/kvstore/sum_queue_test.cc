// SPDX-License-Identifier: Apache-2.0
// Sums in a thread of their own: their order, errors and times.
#include "core/kvstore/sum_queue.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::ElementsAre;

TEST(SumQueue, RunsJobsInTheirOrderWhileTheCallerGoesOn) {
  std::vector<int> order;
  SumQueue queue;
  std::atomic<bool> goes_on{false};
  queue.Submit(7, [&] {
    while (!goes_on.load()) std::this_thread::yield();
    order.push_back(7);
    return absl::OkStatus();
  });
  queue.Submit(3, [&] {
    order.push_back(3);
    return absl::OkStatus();
  });
  goes_on.store(true);
  EXPECT_TRUE(queue.Wait(3).ok());
  EXPECT_TRUE(queue.Wait(7).ok());
  EXPECT_THAT(order, ElementsAre(7, 3));
}

TEST(SumQueue, GivesTheErrorOfAJobToTheOneThatWaitsForIt) {
  SumQueue queue;
  for (int step = 0; step < 2; ++step) {
    queue.Submit(0, [&] { return step == 0 ? Fail(errors::kRankFailed, "a rank is late") : absl::OkStatus(); });
    queue.Submit(1, [] { return absl::OkStatus(); });
    EXPECT_EQ(queue.Wait(0).ok(), step == 1);
    EXPECT_TRUE(queue.Wait(1).ok());
  }
}

TEST(SumQueue, MeasuresJobsAndWaits) {
  SumQueue queue;
  queue.Submit(0, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(queue.Wait(0).ok());
  const auto [busy, waited] = queue.Times();
  EXPECT_GE(busy, 20'000);
  EXPECT_GT(waited, 0);
  EXPECT_LT(waited, busy);
}

TEST(SumQueue, EndsWithJobsThatNobodyWaitsFor) {
  SumQueue queue;
  queue.Submit(0, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return absl::OkStatus();
  });
  queue.Submit(1, [] { return absl::OkStatus(); });
}

}  // namespace
}  // namespace mge
