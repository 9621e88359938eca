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
  ControlledRun first(&by);
  by.SetTimeout(0);
  by.SetSeed(4);
  ControlledRun second(&by);
  EXPECT_TRUE(first.control().deadline.has_value());
  EXPECT_FALSE(second.control().deadline.has_value());
  EXPECT_EQ(first.control().seed, 3u);
  EXPECT_EQ(second.control().seed, 4u);
}

TEST(RunControl, CancelEndsAllRunsAndLaterRunsUntilReset) {
  RunControl by;
  ControlledRun first(&by), alone(nullptr);
  { ControlledRun gone(&by); }
  ControlledRun second(&by);
  by.Cancel();
  ControlledRun late(&by);
  for (ControlledRun* run : {&first, &second, &late}) EXPECT_FALSE(run->control().CheckStop().ok());
  EXPECT_TRUE(alone.control().CheckStop().ok());
  by.Reset();
  EXPECT_FALSE(first.control().CheckStop().ok());
  EXPECT_TRUE(ControlledRun(&by).control().CheckStop().ok());
}

TEST(RunControl, ReportsTheRunFurthestPastItsTimeLimit) {
  RunControl by;
  EXPECT_EQ(by.LookAt().seconds, 0);
  by.SetTimeout(1e-6);
  ControlledRun hangs(&by);
  hangs.control().Begin();
  by.SetTimeout(100);
  ControlledRun works(&by);
  works.control().Begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(by.LookAt().seconds, 0);
  hangs.control().End();
  EXPECT_EQ(by.LookAt().seconds, 0);
}

}  // namespace
}  // namespace mge
