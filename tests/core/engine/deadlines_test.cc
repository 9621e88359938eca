// SPDX-License-Identifier: Apache-2.0
#include "core/engine/deadlines.h"

#include <deque>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

Deadlines::Clock::time_point In(Deadlines::Clock::duration d) { return Deadlines::Clock::now() + d; }

void AwaitChange(const std::atomic<int32_t>& stop) {
  while (stop.load() == kGoOn) std::this_thread::yield();
}

TEST(Deadlines, SetTheFlagWhenTheTimeIsUpAndClearItAtTheEnd) {
  Deadlines deadlines;
  std::atomic<int32_t> stop{kGoOn};
  for (int i = 0; i < 3; ++i) {
    Deadlines::Watch watch(deadlines, In(milliseconds(1)), stop);
    AwaitChange(stop);
    EXPECT_EQ(stop, kTimeIsUp);
  }
  EXPECT_EQ(stop, kGoOn);
}

TEST(Deadlines, DoNotClearAFlagThatTheUserSet) {
  Deadlines deadlines;
  std::atomic<int32_t> stop{kStopAsked}, other{kGoOn};
  {
    Deadlines::Watch watch(deadlines, In(milliseconds(-1)), stop), later(deadlines, In(milliseconds(2)), other);
    AwaitChange(other);
    EXPECT_EQ(stop, kStopAsked);
  }
  EXPECT_EQ(stop, kStopAsked);
}

TEST(Deadlines, MayBeAddedAndEndInAnyOrder) {
  Deadlines deadlines;
  std::atomic<int32_t> far{kGoOn}, near{kGoOn}, last{kGoOn};
  std::deque<Deadlines::Watch> watches;
  watches.emplace_back(deadlines, In(hours(1)), far);
  watches.emplace_back(deadlines, In(hours(2)), far);
  watches.emplace_back(deadlines, In(milliseconds(1)), near);
  AwaitChange(near);
  watches.pop_front();
  watches.pop_back();
  watches.emplace_back(deadlines, In(milliseconds(1)), last);
  AwaitChange(last);
  EXPECT_EQ(far, kGoOn);
}

TEST(Deadlines, ServeManyThreadsAtOnce) {
  Deadlines deadlines;
  std::atomic<int> in_time{0};
  std::deque<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        std::atomic<int32_t> stop{kGoOn};
        Deadlines::Watch watch(deadlines, In(std::chrono::microseconds(i % 7 * 20)), stop);
        if (t % 2) continue;
        AwaitChange(stop);
        ++in_time;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(in_time, 200);
}

TEST(Deadlines, WorkInAForkedChildToo) {
  Deadlines deadlines;
  std::atomic<int32_t> stop{kGoOn};
  Deadlines::Watch mine(deadlines, In(hours(1)), stop);
  EXPECT_EQ(InChild([&] {
              std::atomic<int32_t> its{kGoOn};
              Deadlines::Watch watch(deadlines, In(milliseconds(1)), its);
              AwaitChange(its);
              return true;
            }),
            0);
}

}  // namespace
}  // namespace mge
