// SPDX-License-Identifier: Apache-2.0
#include "core/engine/step_operations.h"

#include <algorithm>
#include <set>
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
    const int32_t last = segment.first_step + segment.step_count;
    for (int32_t first = segment.first_step; first < last; first += plan.operation_steps) {
      const int32_t end = std::min(first + plan.operation_steps, last);
      Operation operation;
      operation.run = [this, first, end] {
        RunSteps(first, end);
        return absl::OkStatus();
      };
      std::set<int32_t> reads, writes;
      bool host = false;
      for (int32_t i = first; i < end; ++i) {
        const StepAccess& access = plan.accesses[static_cast<size_t>(i)];
        reads.insert(access.reads.begin(), access.reads.end());
        writes.insert(access.writes.begin(), access.writes.end());
        host |= plan.steps[static_cast<size_t>(i)].fn == RunHostStep;
      }
      for (int32_t v : reads) {
        if (!writes.contains(v)) operation.reads.push_back(buffers[static_cast<size_t>(v)]);
      }
      for (int32_t v : writes) operation.writes.push_back(buffers[static_cast<size_t>(v)]);
      if (segment.queue != kCallingThread) operation.writes.push_back(queues[static_cast<size_t>(segment.queue)]);
      if (host) operation.writes.push_back(environment);
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

void StepOperations::RunSteps(int32_t first, int32_t end) {
  absl::Status status;
  int32_t step = first;
  for (; step < end && !failed_.load(std::memory_order_acquire); ++step) {
    status = NoThrow([&] { return run_step_(step); });
    if (!status.ok()) break;
  }
  if (status.ok()) return;
  std::lock_guard lock(mutex_);
  if (failure_.ok() || step < failed_step_) {
    failure_ = std::move(status);
    failed_step_ = step;
  }
  failed_.store(true, std::memory_order_release);
}

}  // namespace mge
