// SPDX-License-Identifier: Apache-2.0
#include "core/profile/timeline.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

ProfiledSpan StepSpan(int32_t step, int64_t begin, int64_t end, double device_us = -1) {
  return {.plan = 0, .step = step, .begin = begin, .end = end, .device_us = device_us};
}

ProfiledRun RunOf(int64_t begin, int64_t end) {
  ProfiledRun run;
  run.begin = begin;
  run.end = end;
  return run;
}

// A plan with a step on the host's threads and one on a queue.
Recording TwoSteps() {
  Recording recording;
  ProfiledStep first, second;
  first.label = "first", first.main_op = "Conv", first.device = "cpu0", first.kernel = "k";
  second.label = "second", second.main_op = "Relu", second.device = "gpu0", second.queue = "compute 0", second.kernel = "q";
  recording.plans.emplace_back().steps = {first, second};
  return recording;
}

TEST(Timelines, HaveARowForEachThreadAndQueueOfTheMedianRun) {
  Recording recording = TwoSteps();
  recording.runs.push_back(RunOf(0, 90000));
  ProfiledRun run = RunOf(100000, 150000);
  run.spans = {StepSpan(0, 101000, 111000), StepSpan(1, 112000, 142000, 20)};
  run.spans[0].share_count = 2;
  run.shares = {{.thread = 0, .begin = 101000, .end = 111000}, {.thread = 3, .begin = 102000, .end = 110000}};
  recording.runs.push_back(run);
  recording.runs.push_back(RunOf(200000, 200001));
  const nlohmann::json report = nlohmann::json::parse(TimelineText(recording));
  EXPECT_EQ(report["schema"], "mge.timeline/1");
  EXPECT_EQ(report["wall_us"], 50);
  EXPECT_EQ(report["rows"], nlohmann::json({"cpu0", "cpu0, worker 3", "gpu0, queue compute 0"}));
  ASSERT_EQ(report["spans"].size(), 3u);
  EXPECT_EQ(
      report["spans"][0],
      nlohmann::json(
          {{"row", 0}, {"label", "first"}, {"operator", "Conv"}, {"kernel", "k"}, {"begin_us", 1.0}, {"end_us", 11.0}}));
  EXPECT_EQ(report["spans"][1]["row"], 1);
  EXPECT_EQ(report["spans"][2]["begin_us"], 22.0);  // the device has worked for the last 20 us
  EXPECT_EQ(report["spans"][2]["end_us"], 42.0);
}

TEST(Timelines, HaveNoRowsWithoutARun) {
  const nlohmann::json report = nlohmann::json::parse(TimelineText(TwoSteps()));
  EXPECT_TRUE(report["rows"].empty());
  EXPECT_TRUE(report["spans"].empty());
}

}  // namespace
}  // namespace mge
