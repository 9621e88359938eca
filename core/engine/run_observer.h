// SPDX-License-Identifier: Apache-2.0
// An observer of one run: is told of its plans, steps and shared work as they begin and end. For profiles.
//
// A run without an observer makes no call and reads no clock for it. A run with one waits for each step of a queue before it
// enqueues the next step, and replays no record: times are those of single steps, not of steps that overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/plan/plan.h"

namespace mge {

// The run's own thread makes the calls, but for those of chunks. They come in pairs that nest; once a run has failed, ends
// may be missing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // A plan: the model's, or, within a step, that of one of its bodies. `body`: "then_branch", "body"; empty for the model's.
  virtual void BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view body) = 0;
  virtual void EndPlan() = 0;
  virtual void BeginStep(int32_t step) = 0;  // index into Plan::steps of the plan that began last
  virtual void EndStep() = 0;
  // A plan is looked up, and made if it is not known yet: before BeginPlan().
  virtual void BeginPlanning() = 0;
  virtual void EndPlanning() = 0;

  // A step of the calling thread shares chunks of work with the compute pool. May be called within a chunk.
  virtual void BeginShare() noexcept = 0;
  virtual void EndShare() noexcept = 0;
  // Any thread. `thread`: ComputePool::ThisThread().
  virtual void BeginChunk(uint32_t thread) noexcept = 0;
  virtual void EndChunk(uint32_t thread) noexcept = 0;
};

}  // namespace mge
