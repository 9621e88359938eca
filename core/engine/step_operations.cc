// SPDX-License-Identifier: Apache-2.0
#include "core/engine/step_operations.h"

#include <utility>

#include "core/base/exception.h"
#include "core/plan/host_step.h"

namespace mge {
namespace {

Work WorkOf(const Plan& plan, const Segment& segment) {
  if (segment.queue == kCallingThread) return Work::kCpu;
  return plan.queues[static_cast<size_t>(segment.queue)].kind == MGE_QUEUE_COMPUTE ? Work::kDevice : Work::kCopy;
}

}  // namespace

StepOperations::StepOperations(const Plan& plan, DependencyEngine& engine, std::function<absl::Status(int32_t)> run_step)
    : engine_(engine), run_step_(std::move(run_step)) {
  std::vector<Variable> buffers, queues;
  for (int32_t i = 0; i < plan.access_variables; ++i) buffers.push_back(DependencyEngine::NewVariable());
  for (size_t i = 0; i < plan.queues.size(); ++i) queues.push_back(DependencyEngine::NewVariable());
  const Variable environment = DependencyEngine::NewVariable();
  operations_.reserve(plan.steps.size());
  for (const Segment& segment : plan.segments) {
    for (int32_t i = segment.first_step; i < segment.first_step + segment.step_count; ++i) {
      const StepAccess& access = plan.accesses[static_cast<size_t>(i)];
      Operation operation;
      operation.run = [this, i] {
        RunStep(i);
        return absl::OkStatus();
      };
      for (int32_t v : access.reads) operation.reads.push_back(buffers[static_cast<size_t>(v)]);
      for (int32_t v : access.writes) operation.writes.push_back(buffers[static_cast<size_t>(v)]);
      if (segment.queue != kCallingThread) operation.writes.push_back(queues[static_cast<size_t>(segment.queue)]);
      if (plan.steps[static_cast<size_t>(i)].fn == RunHostStep) operation.writes.push_back(environment);
      operation.device = segment.device->name();
      operation.work = WorkOf(plan, segment);
      operations_.emplace_back(std::move(operation));
    }
  }
}

absl::Status StepOperations::Run(const RunState& control) {
  failed_.store(false, std::memory_order_relaxed);
  failure_ = absl::OkStatus();
  group_.Begin(count());
  for (PreparedOperation& operation : operations_) {
    engine_.Push(operation, group_, control.priority.value_or(0), control.priority.has_value());
  }
  group_.Wait();
  return std::exchange(failure_, absl::OkStatus());
}

void StepOperations::RunStep(int32_t step) {
  if (failed_.load(std::memory_order_acquire)) return;
  absl::Status status = NoThrow([&] { return run_step_(step); });
  if (status.ok()) return;
  std::lock_guard lock(mutex_);
  if (failure_.ok() || step < failed_step_) {
    failure_ = std::move(status);
    failed_step_ = step;
  }
  failed_.store(true, std::memory_order_release);
}

}  // namespace mge
