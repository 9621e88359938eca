// SPDX-License-Identifier: Apache-2.0
// The operations of an instance if its steps are operations of the dependency engine: engine.bulk_inference is false, the
// engine is naive, or the session trains. An operation has one step, or up to engine.bulk_train_steps steps in a row of one
// queue.
//
// The engine orders the steps by variables for the plan's buffers (Plan::accesses). Steps on one queue write a variable of
// that queue, because a queue has one user at a time. Host steps write a common variable, because they share the instance's
// environment. The operations are made once and allocate nothing in a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/engine/dependency_engine.h"
#include "core/engine/run_state.h"
#include "core/plan/plan.h"

namespace mge {

// The operations of one instance. Used for one run at a time. The plan and the engine must outlive their runs.
class StepOperations {
 public:
  // Makes the operations. They call run_step() with the index of a step, on a thread of the engine.
  StepOperations(const Plan& plan, DependencyEngine& engine, std::function<absl::Status(int32_t step)> run_step);

  // Runs all steps and waits for them. After a failure, skips the steps that have not started. Returns the error of the
  // first failed step in the order of the plan. Must not be called within an operation (DependencyEngine::InOperation()).
  absl::Status Run(const RunState& control);
  int64_t count() const { return static_cast<int64_t>(operations_.size()); }

 private:
  // Runs steps one after the other until one fails.
  void RunSteps(int32_t first, int32_t end);

  DependencyEngine& engine_;
  const std::function<absl::Status(int32_t)> run_step_;
  std::vector<PreparedOperation> operations_;
  OperationGroup group_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards the members below
  int32_t failed_step_ = 0;
  absl::Status failure_;
};

}  // namespace mge
