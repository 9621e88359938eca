// SPDX-License-Identifier: Apache-2.0
// The observer of one run, for profilers. It is called when the run's plans, steps and shared work begin and end.
//
// A run without an observer makes no such calls and reads no clock. A run with an observer waits for each step of a queue
// before it enqueues the next one, and replays no records. Times are therefore those of single steps, not of steps that
// overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/plan/plan.h"

namespace mge {

// The interface. The thread of the run makes all calls, except those for chunks. Calls come in nested pairs. If a run fails,
// calls of End functions may be missing.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // A plan runs: the model's, or within a step that of a body. `body` is "then_branch", "body"; empty for the model's plan.
  virtual void BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view body) = 0;
  virtual void EndPlan() = 0;
  virtual void BeginStep(int32_t step) = 0;  // index into Plan::steps of the plan that began last
  // The device's own time of the running step, in microseconds, if the backend has stamps. Called before EndStep().
  virtual void StepTime(double) {}
  virtual void EndStep() = 0;
  // The run looks up its plan, and creates it if there is none. Called before BeginPlan().
  virtual void BeginPlanning() = 0;
  virtual void EndPlanning() = 0;

  // A step of the calling thread shares chunks of work with the compute pool. May be called within a chunk.
  virtual void BeginShare() noexcept = 0;
  virtual void EndShare() noexcept = 0;
  // A thread runs a chunk. Called on any thread. `thread` is ComputePool::ThisThread().
  virtual void BeginChunk(uint32_t thread) noexcept = 0;
  virtual void EndChunk(uint32_t thread) noexcept = 0;
};

}  // namespace mge
