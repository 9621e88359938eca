// SPDX-License-Identifier: Apache-2.0
#include "core/engine/run_fence.h"

#include <algorithm>
#include <utility>

#include "core/engine/runtime.h"
#include "core/plugin/ask.h"
#include "core/plugin/queue_wait.h"

namespace mge {
namespace {

constexpr std::chrono::minutes kLimit{1};  // the wait for a run whose fence is released
using Clock = std::chrono::steady_clock;

}  // namespace

std::shared_ptr<RunFence> RunFence::Ended(std::shared_ptr<Runtime> runtime, absl::Status status) {
  std::shared_ptr<RunFence> fence(new RunFence(std::move(runtime)));
  fence->status_ = std::move(status);
  return fence;
}

absl::StatusOr<std::shared_ptr<RunFence>> RunFence::Start(std::shared_ptr<Runtime> runtime, std::shared_ptr<const Plan> plan,
                                                          std::vector<HostValue> inputs, std::vector<HostValue> outputs,
                                                          RunState& control,
                                                          std::span<const std::shared_ptr<RunFence>> after,
                                                          std::shared_ptr<RunFence> previous) {
  std::shared_ptr<RunFence> fence(new RunFence(std::move(runtime)));
  std::vector<Instance::QueuePoint> points;
  for (const std::shared_ptr<RunFence>& earlier : after) {
    const absl::StatusOr<bool> ended = earlier->Wait({});
    if (!ended.ok()) {
      fence->status_ = ended.status();
      return fence;
    }
    if (*ended) continue;
    fence->after_.push_back(earlier);
    points.insert(points.end(), earlier->ends_.begin(), earlier->ends_.end());
  }
  if (previous) {
    if (const absl::StatusOr<bool> ended = previous->Wait({}); ended.ok() && !*ended) {
      points.insert(points.end(), previous->ends_.begin(), previous->ends_.end());
      fence->previous_ = std::move(previous);
    }
  }
  fence->plan_ = std::move(plan);
  fence->inputs_ = std::move(inputs);
  fence->outputs_ = std::move(outputs);
  if (control.observer) control.observer->BeginPlan(fence->plan_, "");
  MGE_ASSIGN_OR_RETURN(fence->instance_, InstanceStore::Of(*fence->plan_).Acquire());
  absl::Status status = fence->instance_->Start(fence->inputs_, fence->outputs_, control, points, fence->ends_);
  if (control.observer) control.observer->EndPlan();
  for (const Instance::QueuePoint& point : fence->ends_) fence->devices_.push_back(point.device->shared_from_this());
  if (!status.ok()) {
    fence->End();
    return status;
  }
  fence->ended_.store(false, std::memory_order_release);
  fence->runtime_->queue_limits().Add(fence);
  return fence;
}

absl::StatusOr<std::shared_ptr<RunFence>> RunFence::OfStream(std::shared_ptr<Runtime> runtime, const NativeStream& stream) {
  std::shared_ptr<RunFence> fence(new RunFence(std::move(runtime)));
  Device& device = stream.device();
  Instance::QueuePoint point = {&device, nullptr, 1};
  MGE_RETURN_IF_ERROR(QueryDevice(device, "creating a fence", [&](mge_error* e) {
    return device.queue_api()->fence_create(device.handle(), &point.fence, e);
  }));
  fence->ends_.push_back(point);
  fence->devices_.push_back(device.shared_from_this());
  MGE_RETURN_IF_ERROR(stream.Signal(point.fence, point.value));
  fence->ended_.store(false, std::memory_order_release);
  return fence;
}

absl::Status RunFence::Delay(const NativeStream& stream) {
  if (ended_.load(std::memory_order_acquire)) return absl::OkStatus();
  for (const Instance::QueuePoint& point : ends_) {
    if (&point.device->backend() == &stream.device().backend()) {
      MGE_RETURN_IF_ERROR(stream.Wait(point.fence, point.value));
    } else {
      MGE_RETURN_IF_ERROR(WaitForFence(*point.device->queue_api(), point.fence, point.value, nullptr).status());
    }
  }
  return absl::OkStatus();
}

RunFence::~RunFence() {
  absl::StatusOr<bool> ended = Wait(kLimit);
  if (ended.ok() && !*ended) {
    if (instance_) instance_->Abandon();
    stuck_ = true;
    End();
  }
  for (const Instance::QueuePoint& point : ends_) {
    if (!stuck_ && !point.device->Orphaned()) point.device->queue_api()->fence_destroy(point.fence);
  }
}

absl::StatusOr<bool> RunFence::Wait(std::chrono::nanoseconds limit) {
  const Clock::time_point end = Clock::now() + std::min<std::chrono::nanoseconds>(limit, std::chrono::hours(24 * 365));
  for (size_t i = 0; i < ends_.size() && !ended_.load(std::memory_order_acquire); ++i) {
    const Instance::QueuePoint& point = ends_[i];
    if (point.device->Orphaned()) MGE_RETURN_IF_ERROR(point.device->Open());  // fails with the reason
    const auto left = std::max<std::chrono::nanoseconds>(end - Clock::now(), {});
    MGE_ASSIGN_OR_RETURN(const mge_code code,
                         WaitForFence(*point.device->queue_api(), point.fence, point.value, nullptr, left));
    if (code == MGE_DEADLINE_EXCEEDED) return false;
  }
  std::lock_guard lock(mutex_);
  if (!ended_.load(std::memory_order_relaxed)) {
    status_ = Outcome();
    // A device may run work behind a failed fence, so failures of earlier runs are passed on here.
    for (const std::shared_ptr<RunFence>& earlier : after_) {
      absl::StatusOr<bool> other = earlier->Wait(kLimit);
      if (!other.ok()) status_ = other.status();
    }
    if (previous_) (void)previous_->Wait(kLimit);
    End();
  }
  if (!status_.ok()) return status_;
  return true;
}

UnfinishedList& ReleasedRuns() {
  static auto* const list = new UnfinishedList;  // never destroyed: a device may still write to the memory of these runs
  return *list;
}

void GiveUp(std::shared_ptr<RunFence> fence) {
  struct Released final : Unfinished {
    explicit Released(std::shared_ptr<RunFence> f) : fence(std::move(f)) {}
    bool Over(std::chrono::nanoseconds patience) noexcept override {
      const absl::StatusOr<bool> ended = fence->Wait(patience);
      return !ended.ok() || *ended;
    }
    std::shared_ptr<RunFence> fence;
  };
  auto released = std::make_unique<Released>(std::move(fence));
  if (!released->Over({})) ReleasedRuns().Add(std::move(released));
  ReleasedRuns().Reclaim({});
}

absl::Status WaitForRun(RunFence& run, const RunState& control, absl::Status* ended) {
  for (absl::StatusOr<bool> over = false; over.ok() && !*over; *ended = over.status()) {
    MGE_RETURN_IF_ERROR(control.CheckStop());
    over = run.Wait(kStopSlice);
  }
  return absl::OkStatus();
}

// Returns the status of a run whose fences are reached or have failed.
absl::Status RunFence::Outcome() {
  if (instance_) return instance_->Finish();
  const Instance::QueuePoint& point = ends_.front();
  return QueryDevice(*point.device, "work on a stream of the application",
                     [&](mge_error* e) { return point.device->queue_api()->host_wait(point.fence, point.value, 0, e); });
}

// Gives the instance back, and releases the tensors and the earlier runs.
void RunFence::End() {
  if (instance_) {
    stuck_ = instance_->state() == InstanceQueues::State::kStuck;
    InstanceStore::Of(*plan_).Release(std::move(instance_));
  }
  // The device may still access this memory.
  if (stuck_) Leak(std::move(inputs_), std::move(outputs_), std::move(after_), std::move(previous_));
  inputs_.clear();
  outputs_.clear();
  after_.clear();
  previous_.reset();
  plan_.reset();
  ended_.store(true, std::memory_order_release);
}

}  // namespace mge
