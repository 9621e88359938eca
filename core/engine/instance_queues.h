// SPDX-License-Identifier: Apache-2.0
// The queues of an instance: enqueues segments, orders them by fences, captures and replays them, and waits for them.
//
// Launching a kernel takes microseconds of the calling thread, which limits models with many small kernels. Backends can
// record the work of a segment once (capture) and enqueue the record as one unit (replay). Devices also run while the host
// continues, so errors appear later, and a device may never finish. Algorithm:
//   - Each queue has one fence. It grows by PlanQueue::signals in each run, so FencePoint values need no reset between runs.
//   - Enqueue() enqueues the segment's waits, then its steps or their record, then its signal.
//   - A signal is enqueued before any wait for it, on a queue or on the host: Queue::signalled counts them.
//   - The first run of a segment enqueues its steps, which lets kernels allocate and load what they need. The second run
//     captures them, if they are capture-safe. Later runs replay the record. If the caller's memory for inputs or outputs
//     has moved, the steps are captured again; a segment keeps the records of the last kMaxRecords memories, and then
//     updates the oldest one. A backend that cannot update gets a new record once two runs have used the same memory. If
//     capturing fails, the segment is never captured again.
//   - Devices need not pass a failure on: work behind a failed fence may run. So the calling thread waits for every queue on
//     which a result depends (Segment::host_waits), and each run ends with a wait for all queues. FailureOf() finds the
//     first signal in the plan's order that failed. The steps since the signal before it are the place in the error.
//   - After a failed run, Drain() waits until the queues have stopped, and decides whether the instance can be used again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/engine/queue_limits.h"
#include "core/engine/run_state.h"
#include "core/engine/step_checks.h"
#include "core/plan/plan.h"
#include "core/plugin/queue_wait.h"

namespace mge {

// The queues for one run at a time. Used by one thread at a time. The plan must outlive it.
class InstanceQueues {
 public:
  // Creates a queue and a fence for each queue of the plan. The queues of GPUs work within `limits`, which must outlive the
  // result.
  static absl::StatusOr<std::unique_ptr<InstanceQueues>> Create(const Plan& plan, QueueLimits& limits);
  // All enqueued work must have ended.
  ~InstanceQueues();
  InstanceQueues(const InstanceQueues&) = delete;
  InstanceQueues& operator=(const InstanceQueues&) = delete;

  // Returns true if the queues belong to the parent process. This process must then not use or destroy them.
  bool Orphaned() const { return !queues_.empty() && queues_.front().device->Orphaned(); }
  mge_queue* queue(int32_t index) const { return queues_[static_cast<size_t>(index)].queue; }

  // Enqueues a segment of the plan, or its record. With checks of steps (nullable) or an observer, captures and replays
  // nothing, and waits for each step before it enqueues the next one. Errors name the step or steps that failed.
  absl::Status Enqueue(size_t segment, const mge_run& run, const RunState& control, StepChecks* checks);
  // Enqueues one step of a queue and waits for it. Different queues may be used by different threads.
  absl::Status RunAndWait(int32_t queue, const Step& step, const mge_run& run, const RunState& control);
  // Waits until the point is reached. Fails with kCancelled or kTimeout, which name the first steps that have not ended.
  // Fails with the failure of a queue, which names the steps in which it began.
  absl::Status HostWait(const FencePoint& point, const RunState& control);
  // Forgets all records, because memory that their steps use has moved. No run may be in progress.
  void DropRecords();
  // Waits for all queues. Each run must end with FinishRun() or Drain().
  absl::Status FinishRun(const RunState& control);

  // The condition after a failed run. kGood: the queues can be used again. kBroken: a queue has failed, and the instance
  // must be destroyed. kStuck: a device still works, so the instance's memory must not be used or released.
  enum class State { kGood, kBroken, kStuck };
  // Waits at most `patience` until all enqueued work has ended.
  State Drain(std::chrono::nanoseconds patience);

  // Returns the number of replays.
  uint64_t replays() const { return replays_; }

 private:
  struct Queue {
    Device* device = nullptr;
    const mge_queue_api* api = nullptr;
    mge_queue* queue = nullptr;
    mge_fence* fence = nullptr;
    uint64_t before = 0;                      // value of the fence when the run began
    uint64_t signalled = 0;                   // largest value whose signal has been enqueued
    uint64_t good = 0;                        // largest value that is known to have been reached without a failure
    QueueEnd end;                             // waits for the end of a failed run
    size_t permit = 0;                        // index of the queue whose permit it uses
    QueueLimits::Permits* permits = nullptr;  // of its GPU; nullptr: its device has no limit
    bool permitted = false;                   // it has one of them
    mge_fence* steps = nullptr;               // fence that counts single steps; created at its first use
    uint64_t step_count = 0;
    mge_stamp* stamps[2] = {};  // taken before and after an observed step; created at the first one
  };
  // The steps of a segment, captured with the memory of some runs. Callers often take turns with a few inputs and outputs.
  static constexpr size_t kMaxRecords = 4;
  struct Record {
    void* record = nullptr;
    std::vector<void*> bases = {};  // addresses of Segment::bases in the record
    uint64_t used = 0;              // number of the segment's run that used it last
  };
  // The records of a segment. kNew: not run yet. kWarm: has run, to be captured. kNever: cannot be captured.
  struct Records {
    enum class State { kNew, kWarm, kRecorded, kNever } state = State::kNever;
    bool updates = false;            // the backend may update a record
    std::vector<void*> latest = {};  // addresses of Segment::bases in the latest run
    std::vector<Record> kept = {};   // at most kMaxRecords
    uint64_t runs = 0;
  };

  InstanceQueues(const Plan& plan, QueueLimits& limits) : plan_(plan), limits_(limits) {}
  // Acquires the permit of a queue before work is enqueued on it. Waits for it, also for other queues of this run.
  absl::Status AcquirePermit(const Queue& queue, const RunState& control);
  void ReleasePermits();
  // Waits until all work that has been enqueued on the queue has ended.
  absl::Status WaitForQueue(Queue& queue, const RunState& control);
  // Returns the value of the queue's fence that corresponds to a point in this run.
  uint64_t ValueOf(const FencePoint& point) const { return queues_[static_cast<size_t>(point.queue)].before + point.value; }
  absl::Status RunStep(const Step& step, const mge_run& run) const;
  absl::Status RunSteps(const Segment& segment, const mge_run& run) const;
  // Runs the steps of a segment one by one, with the red zones and the observer.
  absl::Status RunWatched(const Segment& segment, const mge_run& run, const RunState& control, StepChecks* checks);
  // Takes stamps[index] on the queue, if its backend has stamps.
  static absl::Status TakeStamp(Queue& queue, int index);
  // Tells the observer the time between the stamps. The work before both must have ended.
  static absl::Status TellStepTime(const Queue& queue, RunObserver& observer);
  // Waits until the step that was enqueued last has ended.
  absl::Status FinishStep(const Step& step, Queue& queue, const RunState& control);
  static absl::Status MakeFence(const Queue& queue, mge_fence** fence);
  // Returns the record to replay in this run, or nullptr if there is none. Captures the steps if that is due.
  Record* ToReplay(const Segment& segment, Records& records, const mge_run& run);
  // Captures the steps of a segment: creates a record, or updates or replaces the one that was not used for the longest time.
  // Returns nullptr if that failed.
  Record* Capture(const Segment& segment, Records& records, const mge_run& run);
  void DestroyRecords(const Segment& segment, Records& records);
  absl::Status CreateQueue(Queue& queue, int32_t kind);
  // The steps between two signals of a queue, with the state of the fence at the second signal.
  struct Stretch {
    mge_code answer;  // result of host_wait() without waiting
    mge_error reason;
    std::string place;
  };
  // Returns the first stretch with an enqueued signal, in the plan's order, for which wanted(answer) is true. Does not wait.
  std::optional<Stretch> FirstThat(bool (*wanted)(mge_code answer)) const;
  // Returns the first failure of the run. `code` and `error` are used if no fence reports one.
  absl::Status FailureOf(const Queue& queue, mge_code code, const mge_error& error) const;

  const Plan& plan_;
  QueueLimits& limits_;
  std::vector<Queue> queues_;
  std::vector<Records> records_;  // one per segment
  uint64_t replays_ = 0;
};

// Converts the exception that a step threw to a code and `error`. Must be called in the exception's handler. Throws the
// exception again if the step is a host step.
mge_code AnswerOfException(const Step& step, mge_error& error);
// Calls a step and returns its code. If a backend's step throws, returns MGE_INTERNAL with a text. Exceptions of host steps
// are not caught.
inline mge_code CallStep(const Step& step, const mge_run& run) {
  try {
    return step.fn(step.args, &run);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return AnswerOfException(step, *run.error);
  }
}
// Returns the error of a step that failed with that code.
absl::Status StatusOfKernel(mge_code code, const mge_error& error);
// Returns the nodes of a unit for messages: "node 'conv1' (Conv) and 2 more".
std::string UnitPlace(const Unit& unit);
// Returns the same, with device and kernel in front if the unit has a kernel.
std::string StepPlace(const Unit& unit);

}  // namespace mge
