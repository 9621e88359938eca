// SPDX-License-Identifier: Apache-2.0
// A profile as rows: each step, each type of operator, and how far the planner's estimates are from the truth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/profile/profile.h"

namespace mge {

// The estimate of a step is off if it is wrong by more than kOffFactor and the step matters: by its share of the wall time, and by
// the time of one call. The estimate of a plan is off beyond kPlanOffFactor, if its steps take more than kOffLeastUs.
inline constexpr double kOffFactor = 4;
inline constexpr double kOffLeastShare = 0.01;
inline constexpr double kOffLeastUs = 20;
inline constexpr double kPlanOffFactor = 3;

struct StepSummary {
  int32_t plan = 0, step = 0;  // indices in the recording
  double calls = 0;            // in one run
  double time_us = 0;          // in one run, of all calls, without that of bodies
  double share = 0;            // of the wall time
  double median_us = 0, least_us = 0;  // of one call, over all runs
  double gflops = -1, gbytes = -1;     // per second; negative: the work is not known
  std::vector<double> busy;    // by thread: part of the step's time in which it worked; empty on a queue
  double balance = -1;         // mean of `busy`
  bool off = false;            // the estimate is
};

struct OperatorSummary {
  std::string op;
  int32_t steps = 0;
  double calls = 0, time_us = 0, share = 0;  // in one run
  double gflops = -1, gbytes = -1;           // negative: the work of a step is not known
};

// Times are means over the faster half of the runs, so that what else the machine did counts little.
struct Summary {
  size_t runs = 0, counted = 0;
  uint32_t width = 1;
  // wall = the times of all steps + planning (in the run) + between (waiting, binding, outputs)
  double wall_us = 0, planning_us = 0, between_us = 0;
  std::vector<StepSummary> steps;          // in the order of execution, bodies after the plan that runs them
  std::vector<OperatorSummary> operators;  // longest first
  double estimated_us = 0;                 // of the steps that have an estimate, in one run
  double estimated_steps_us = 0;           // what those steps took
  bool off = false;                        // the estimate of the whole is
};
Summary Summarise(const Recording& recording);

// The measured times of units, for plans that still live. Valid while the profile lives.
StepTimes TimesOf(const Profile& profile, const Recording& recording, const Summary& summary);

// Where a plan belongs: "loop1.body"; empty for the model's own.
std::string PathOf(const Recording& recording, int32_t plan);

}  // namespace mge
