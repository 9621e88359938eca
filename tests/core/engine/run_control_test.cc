// SPDX-License-Identifier: Apache-2.0
// One run control that is shared by several runs.
#include "core/engine/run_control.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(RunControl, EachRunHasTheLimitAndTheSeedThatWereSetWhenItBegan) {
  RunControl by;
  by.SetTimeout(100);
  by.SetSeed(3);
  RunState first(&by);
  by.SetTimeout(0);
  by.SetSeed(4);
  RunState second(&by);
  EXPECT_TRUE(first.deadline.has_value());
  EXPECT_FALSE(second.deadline.has_value());
  EXPECT_EQ(first.seed, 3u);
  EXPECT_EQ(second.seed, 4u);
}

TEST(RunControl, CancelEndsAllRunsAndLaterRunsUntilReset) {
  RunControl by;
  RunState first(&by), alone(nullptr);
  { RunState gone(&by); }
  RunState second(&by);
  by.Cancel();
  RunState late(&by);
  for (RunState* run : {&first, &second, &late}) EXPECT_FALSE(run->CheckStop().ok());
  EXPECT_TRUE(alone.CheckStop().ok());
  by.Reset();
  EXPECT_FALSE(first.CheckStop().ok());
  EXPECT_TRUE(RunState(&by).CheckStop().ok());
}

TEST(RunControl, ReportsTheRunFurthestPastItsTimeLimit) {
  RunControl by;
  EXPECT_EQ(by.LookAt().seconds, 0);
  by.SetTimeout(1e-6);
  RunState hangs(&by);
  hangs.Begin();
  by.SetTimeout(100);
  RunState works(&by);
  works.Begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(by.LookAt().seconds, 0);
  hangs.End();
  EXPECT_EQ(by.LookAt().seconds, 0);
}

}  // namespace
}  // namespace mge
