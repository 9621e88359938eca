// SPDX-License-Identifier: Apache-2.0
// The queues of an instance: enqueues segments, orders them by fences, captures what can be replayed, and waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/engine/memory_guard.h"
#include "core/engine/run_control.h"
#include "core/plan/plan.h"
#include "core/plugin/queue_wait.h"

namespace mge {

// For one run at a time, from one thread. Every queue has a fence, which grows by PlanQueue::signals in each run.
class InstanceQueues {
 public:
  // A queue and a fence for each of the plan's.
  static absl::StatusOr<std::unique_ptr<InstanceQueues>> Create(const Plan& plan);
  // Nothing may be enqueued any more.
  ~InstanceQueues();
  InstanceQueues(const InstanceQueues&) = delete;
  InstanceQueues& operator=(const InstanceQueues&) = delete;

  // Whether they are those of the process that this one was forked from.
  bool Orphaned() const { return !queues_.empty() && queues_.front().device->Orphaned(); }
  mge_queue* queue(int32_t index) const { return queues_[static_cast<size_t>(index)].queue; }

  // Enqueues one of the plan's segments: its waits, its steps or their record, its signal. The second run of a segment whose
  // steps are all capture-safe is captured, if the backend can; later ones replay it. A failing step's place is in the
  // error. With a guard or an observer nothing is captured, and every step has ended before the next one is enqueued.
  absl::Status Enqueue(size_t segment, const mge_run& run, const RunControl& control, MemoryGuard* guard);
  // Blocks until the point is reached. kCancelled and kTimeout with the place of the first steps that are not over, or the
  // failure that the fence carries with the place of the segment that it began in.
  absl::Status HostWait(const FencePoint& point, const RunControl& control);
  // Waits for all queues. Every run ends with it, or with Drain.
  absl::Status FinishRun(const RunControl& control);

  // After a run that failed: waits until nothing is enqueued any more, at most so long. kStuck: something still runs, so that
  // the instance's memory may not be touched; kBroken: a queue carries a failure; else it may be used again.
  enum class State { kGood, kBroken, kStuck };
  State Drain(std::chrono::nanoseconds patience);

  // Segments replayed so far.
  uint64_t replays() const { return replays_; }

 private:
  struct Queue {
    Device* device = nullptr;
    const mge_queue_api* api = nullptr;
    mge_queue* queue = nullptr;
    mge_fence* fence = nullptr;
    uint64_t before = 0;       // value of the fence when the run began
    QueueEnd end;              // of a run that failed
    mge_fence* steps = nullptr;  // of a guarded plan or an observed run: counts the steps that ended
    uint64_t step_count = 0;
  };
  struct Record {
    enum class State { kNew, kWarm, kRecorded, kNever } state = State::kNever;
    void* record = nullptr;
  };

  explicit InstanceQueues(const Plan& plan) : plan_(plan) {}
  uint64_t ValueOf(const FencePoint& point) const { return queues_[static_cast<size_t>(point.queue)].before + point.value; }
  absl::Status RunStep(const Step& step, const mge_run& run) const;
  absl::Status RunSteps(const Segment& segment, const mge_run& run) const;
  absl::Status RunWatched(const Segment& segment, const mge_run& run, const RunControl& control, MemoryGuard* guard);
  absl::Status FinishStep(const Step& step, Queue& queue, const RunControl& control);
  static absl::Status MakeFence(const Queue& queue, mge_fence** fence);
  bool Capture(const Segment& segment, Record& record, const mge_run& run);
  // The steps between two signals of a queue, and what its fence answers of the later one.
  struct Stretch {
    mge_code answer;
    mge_error reason;
    std::string place;
  };
  // The first of the plan whose answer is wanted. Nothing is waited for.
  std::optional<Stretch> FirstThat(bool (*wanted)(mge_code answer)) const;
  absl::Status FailureOf(const Queue& queue, mge_code code, const mge_error& error) const;

  const Plan& plan_;
  std::vector<Queue> queues_;
  std::vector<Record> records_;  // of each segment
  uint64_t replays_ = 0;
};

// The answer of a step that has thrown, in the handler of the exception.
mge_code AnswerOfException(const Step& step, mge_error& error);
// Calls a step. MGE_INTERNAL with a text where a backend throws across the boundary; what a step of the core throws goes on.
inline mge_code CallStep(const Step& step, const mge_run& run) {
  try {
    return step.fn(step.args, &run);
  } catch (...) {
    return AnswerOfException(step, *run.error);
  }
}
// What a backend's answer to a step means, and where in the plan that was.
absl::Status StatusOfKernel(mge_code code, const mge_error& error);
std::string UnitPlace(const Unit& unit);
std::string StepPlace(const Unit& unit);  // with device and kernel, where a kernel does it

}  // namespace mge
