// SPDX-License-Identifier: Apache-2.0
// Summaries of profiles, computed from recordings written by hand.
#include "core/profile/summary.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mge {
namespace {

constexpr int64_t kUs = 1000;  // nanoseconds

ProfiledStep Step(const std::string& op, double estimated_us = -1, double flops = 0, double bytes = 0) {
  ProfiledStep s;
  s.nodes = {op + "1"};
  s.ops = {op};
  s.label = op + "1";
  s.main_op = op;
  s.estimated_us = estimated_us;
  s.flops = flops;
  s.bytes = bytes;
  return s;
}

// Returns a run whose steps take `steps_us` microseconds, with `between_us` before each step.
ProfiledRun RunOf(const std::vector<int64_t>& steps_us, int64_t between_us = 0) {
  ProfiledRun run;
  int64_t now = 0;
  int32_t i = 0;
  for (int64_t us : steps_us) {
    now += between_us * kUs;
    run.spans.push_back({.plan = 0, .step = i++, .begin = now, .end = now + us * kUs});
    now += us * kUs;
  }
  run.spans.push_back({.kind = ProfiledSpan::Kind::kPlan, .plan = 0, .begin = 0, .end = now});
  run.end = now;
  return run;
}

TEST(Summary, IsTheMeanOfTheFasterHalfAndTheMedianOfAll) {
  Recording r;
  r.plans = {{.steps = {Step("Conv"), Step("Relu")}}};
  r.runs = {RunOf({10, 2}), RunOf({500, 2}), RunOf({20, 2}), RunOf({30, 2}), RunOf({900, 2})};
  const Summary s = Summarise(r);
  EXPECT_EQ(s.counted, 3u);
  EXPECT_DOUBLE_EQ(s.steps[0].time_us, 20);
  EXPECT_DOUBLE_EQ(s.steps[0].median_us, 30);
  EXPECT_DOUBLE_EQ(s.steps[0].least_us, 10);
  EXPECT_DOUBLE_EQ(s.wall_us, 22);
  EXPECT_NEAR(s.between_us, 0, 1e-9);
}

TEST(Summary, ReportsTimeBetweenStepsSeparately) {
  Recording r;
  r.plans = {{.steps = {Step("Conv"), Step("Relu")}}};
  r.runs = {RunOf({10, 5}, 3)};
  const Summary s = Summarise(r);
  EXPECT_DOUBLE_EQ(s.wall_us, 21);
  EXPECT_DOUBLE_EQ(s.between_us, 6);
  EXPECT_DOUBLE_EQ(s.steps[1].share, 5.0 / 21);
}

TEST(Summary, CountsABodysTimeForItsStepsAndNotForTheCallingStep) {
  Recording r;
  r.plans = {{.steps = {Step("Loop")}}, {.parent = 0, .parent_step = 0, .body = "body", .steps = {Step("Exp")}}};
  ProfiledRun run;
  run.spans = {{.plan = 1, .step = 0, .begin = 10 * kUs, .end = 30 * kUs},
               {.kind = ProfiledSpan::Kind::kPlan, .plan = 1, .begin = 5 * kUs, .end = 35 * kUs},
               {.plan = 1, .step = 0, .begin = 40 * kUs, .end = 60 * kUs},
               {.kind = ProfiledSpan::Kind::kPlan, .plan = 1, .begin = 40 * kUs, .end = 60 * kUs},
               {.plan = 0, .step = 0, .begin = 0, .end = 100 * kUs, .nested = 50 * kUs},
               {.kind = ProfiledSpan::Kind::kPlan, .plan = 0, .begin = 0, .end = 100 * kUs}};
  run.end = 100 * kUs;
  r.runs = {run};
  const Summary s = Summarise(r);
  ASSERT_EQ(s.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(s.steps[0].time_us, 50);
  EXPECT_DOUBLE_EQ(s.steps[1].time_us, 40);
  EXPECT_DOUBLE_EQ(s.steps[1].calls, 2);
  EXPECT_DOUBLE_EQ(s.steps[1].median_us, 20);
  EXPECT_DOUBLE_EQ(s.between_us, 10);
  EXPECT_EQ(PathOf(r, 0), "");
  EXPECT_EQ(PathOf(r, 1), "Loop1.body");
}

TEST(Summary, GivesRatesIfTheWorkIsKnown) {
  Recording r;
  r.plans = {{.steps = {Step("Conv", -1, 3e6, 4e4), Step("Conv", -1, 1e6, -1), Step("NonZero", -1, -1, -1)}}};
  r.runs = {RunOf({10, 30, 5})};
  const Summary s = Summarise(r);
  EXPECT_DOUBLE_EQ(s.steps[0].gflops, 300);
  EXPECT_DOUBLE_EQ(s.steps[0].gbytes, 4);
  EXPECT_LT(s.steps[1].gbytes, 0);
  EXPECT_EQ(s.operators[0].op, "Conv");
  EXPECT_DOUBLE_EQ(s.operators[0].gflops, 100);
  EXPECT_LT(s.operators[0].gbytes, 0);
  EXPECT_LT(s.operators[1].gflops, 0);
}

TEST(Summary, MarksAWrongEstimateOfAStepThatTakesMuchTime) {
  Recording r;
  r.plans = {{.steps = {Step("Slow", 100), Step("Good", 100), Step("Tiny", 0.5), Step("Rare", 1), Step("None")}}};
  r.runs = {RunOf({3000, 350, 15, 25, 400})};  // Tiny is too short, Rare takes less than 1 %
  const Summary s = Summarise(r);
  EXPECT_TRUE(s.steps[0].off);
  EXPECT_FALSE(s.steps[1].off);
  EXPECT_FALSE(s.steps[2].off);
  EXPECT_FALSE(s.steps[3].off);
  EXPECT_FALSE(s.steps[4].off);
  EXPECT_DOUBLE_EQ(s.estimated_us, 201.5);
  EXPECT_DOUBLE_EQ(s.estimated_steps_us, 3390);
  EXPECT_TRUE(s.off);
  r.plans[0].steps[0].estimated_us = 2000;
  EXPECT_FALSE(Summarise(r).off);
  r.plans[0].steps[0].estimated_us = 12001;  // an estimate that is too high is wrong, too
  EXPECT_TRUE(Summarise(r).steps[0].off);
}

TEST(Summary, DoesNotMarkAPlanTooShortToEstimate) {
  Recording r;
  r.plans = {{.steps = {Step("Relu", 1)}}};
  r.runs = {RunOf({19})};
  EXPECT_FALSE(Summarise(r).off);
  r.runs = {RunOf({21})};
  EXPECT_TRUE(Summarise(r).off);
}

TEST(Summary, OfNoRunsIsEmpty) {
  const Summary s = Summarise({});
  EXPECT_EQ(s.runs, 0u);
  EXPECT_TRUE(s.steps.empty());
  EXPECT_FALSE(s.off);
}

}  // namespace
}  // namespace mge
