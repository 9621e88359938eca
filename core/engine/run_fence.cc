// SPDX-License-Identifier: Apache-2.0
#include "core/engine/run_fence.h"

#include <algorithm>
#include <utility>

#include "core/engine/runtime.h"
#include "core/plugin/queue_wait.h"

namespace mge {
namespace {

constexpr std::chrono::minutes kLimit{1};  // the wait for a run whose fence is released
using Clock = std::chrono::steady_clock;

}  // namespace

std::shared_ptr<RunFence> RunFence::Ended(std::shared_ptr<Runtime> runtime) {
  std::shared_ptr<RunFence> fence(new RunFence(std::move(runtime)));
  fence->ended_ = true;
  return fence;
}

absl::StatusOr<std::shared_ptr<RunFence>> RunFence::Start(std::shared_ptr<Runtime> runtime, std::shared_ptr<const Plan> plan,
                                                          std::vector<HostValue> inputs, std::vector<HostValue> outputs,
                                                          RunState& control,
                                                          std::span<const std::shared_ptr<RunFence>> after) {
  std::shared_ptr<RunFence> fence(new RunFence(std::move(runtime)));
  std::vector<Instance::QueuePoint> points;
  for (const std::shared_ptr<RunFence>& earlier : after) {
    MGE_ASSIGN_OR_RETURN(const bool ended, earlier->Wait({}));
    if (ended) continue;
    fence->after_.push_back(earlier);
    points.insert(points.end(), earlier->ends_.begin(), earlier->ends_.end());
  }
  fence->plan_ = std::move(plan);
  fence->inputs_ = std::move(inputs);
  fence->outputs_ = std::move(outputs);
  if (control.observer) control.observer->BeginPlan(fence->plan_, "");
  MGE_ASSIGN_OR_RETURN(fence->instance_, InstanceStore::Of(*fence->plan_).Take());
  absl::Status status = fence->instance_->Start(fence->inputs_, fence->outputs_, control, points, fence->ends_);
  if (control.observer) control.observer->EndPlan();
  if (status.ok()) return fence;
  fence->status_ = status;
  fence->End();
  return status;
}

RunFence::~RunFence() {
  if (ended_) return;
  absl::StatusOr<bool> ended = Wait(kLimit);
  if (ended.ok() && !*ended) {
    instance_->Abandon();
    End();
  }
}

absl::StatusOr<bool> RunFence::Wait(std::chrono::nanoseconds limit) {
  const Clock::time_point end = Clock::now() + std::min<std::chrono::nanoseconds>(limit, std::chrono::hours(24 * 365));
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!lock.try_lock_until(end) && !lock.try_lock()) return false;
  if (!ended_) {
    for (const Instance::QueuePoint& point : ends_) {
      if (point.device->Orphaned()) MGE_RETURN_IF_ERROR(point.device->Open());  // fails with the reason
      const auto left = std::max<std::chrono::nanoseconds>(end - Clock::now(), {});
      MGE_ASSIGN_OR_RETURN(const mge_code code,
                           WaitForFence(*point.device->queue_api(), point.fence, point.value, nullptr, left));
      if (code == MGE_DEADLINE_EXCEEDED) return false;
    }
    status_ = instance_->Finish();
    // A device may run work behind a failed fence, so the failure is passed on here.
    for (const std::shared_ptr<RunFence>& earlier : after_) {
      absl::StatusOr<bool> other = earlier->Wait(std::chrono::hours(1));
      if (!other.ok()) status_ = other.status();
    }
    End();
  }
  if (!status_.ok()) return status_;
  return true;
}

// Gives the instance back, and releases everything that the run used.
void RunFence::End() {
  ended_ = true;
  const bool stuck = instance_ && instance_->state() == InstanceQueues::State::kStuck;
  if (instance_) InstanceStore::Of(*plan_).Give(std::move(instance_));
  if (stuck) {  // the device may still read and write this memory, and signal these fences
    Lose(std::move(inputs_), std::move(outputs_), std::move(after_));
    ends_.clear();
  }
  for (const Instance::QueuePoint& point : ends_) {
    if (!point.device->Orphaned()) point.device->queue_api()->fence_destroy(point.fence);
  }
  ends_.clear();
  inputs_.clear();
  outputs_.clear();
  after_.clear();
  plan_.reset();
}

}  // namespace mge
