// SPDX-License-Identifier: Apache-2.0
// A summary of a profile: the times per step and per operator, and the errors of the planner's estimates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/profile/profile.h"

namespace mge {

// The estimate of a step is off if it differs from the measured time by more than kOffFactor. Only steps count whose share
// of the wall time is above kOffLeastShare and whose calls take more than kOffLeastUs (microseconds). The estimate of a plan
// is off if it differs by more than kPlanOffFactor and its steps take more than kOffLeastUs.
inline constexpr double kOffFactor = 4;
inline constexpr double kOffLeastShare = 0.01;
inline constexpr double kOffLeastUs = 20;
inline constexpr double kPlanOffFactor = 3;

struct StepSummary {
  int32_t plan = 0, step = 0;          // indices in the recording
  double calls = 0;                    // calls per run
  double time_us = 0;                  // time per run of all calls, without the bodies
  double share = 0;                    // fraction of the wall time
  double median_us = 0, least_us = 0;  // time of one call, over all runs
  double gflops = -1, gbytes = -1;     // 10^9 per second; negative: the work is unknown
  std::vector<double> busy;            // per thread, the fraction of the step's time in which it worked; empty on a queue
  double balance = -1;                 // mean of `busy`; negative on a queue
  bool off = false;                    // the estimate is off
};

struct OperatorSummary {
  std::string op;
  int32_t steps = 0;
  double calls = 0, time_us = 0, share = 0;  // per run
  double gflops = -1, gbytes = -1;           // 10^9 per second; negative: the work of a step is unknown
};

// Times are means over the faster half of the runs (`counted` of `runs`). This reduces the effect of other load on the
// machine.
struct Summary {
  size_t runs = 0, counted = 0;
  uint32_t width = 1;
  // wall time = times of all steps + planning within the run + time between steps (waiting, binding, outputs)
  double wall_us = 0, planning_us = 0, between_us = 0;
  std::vector<StepSummary> steps;          // in the order of execution, bodies after the plan that runs them
  std::vector<OperatorSummary> operators;  // longest first
  double estimated_us = 0;                 // estimated time per run of the steps that have an estimate
  double estimated_steps_us = 0;           // measured time of those steps
  bool off = false;                        // the estimate of the plan is off
};
Summary Summarise(const Recording& recording);

// Returns a function that looks up the measured times of a plan's units. It refers to `profile`, which must outlive it.
StepTimes TimesOf(const Profile& profile, const Recording& recording, const Summary& summary);

// Returns the path of a body's plan, such as "loop1.body", or "" for the model's plan.
std::string PathOf(const Recording& recording, int32_t plan);

}  // namespace mge
