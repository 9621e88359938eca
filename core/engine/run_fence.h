// SPDX-License-Identifier: Apache-2.0
// The end of a run that was enqueued and may still be in progress.
//
// Session::Submit() returns such a fence. The caller waits for it, or passes it to a later run, whose queues then wait on
// the device. The fence keeps everything that the enqueued work uses: instance, plan, tensors, runtime, and the fences of
// earlier runs for which its queues wait. The first wait that sees the end of the run gives the instance back to its store.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/engine/instance.h"
#include "core/plugin/native_stream.h"
#include "core/plugin/unfinished.h"

namespace mge {

class Runtime;

// A fence of one run. Thread-safe.
class RunFence : public EnqueuedRun {
 public:
  // Starts a run of the plan with an instance of its store. `outputs` are defined, in memory to which the plan writes them.
  // Fails with the run's error if enqueuing fails. Its work begins behind that of `after` and of `previous` (nullable). If a
  // run of `after` has failed already, returns a fence with its failure. A failure of `previous` is not passed on.
  static absl::StatusOr<std::shared_ptr<RunFence>> Start(std::shared_ptr<Runtime> runtime, std::shared_ptr<const Plan> plan,
                                                         std::vector<HostValue> inputs, std::vector<HostValue> outputs,
                                                         RunState& control, std::span<const std::shared_ptr<RunFence>> after,
                                                         std::shared_ptr<RunFence> previous);
  // Returns the fence of a run that has ended with this status.
  static std::shared_ptr<RunFence> Ended(std::shared_ptr<Runtime> runtime, absl::Status status = {});
  // Returns a fence that is reached when the work that is now on a stream of the application has ended. It is one for `after`.
  static absl::StatusOr<std::shared_ptr<RunFence>> OfStream(std::shared_ptr<Runtime> runtime, const NativeStream& stream);
  // Waits up to a minute for the run. A device that does not stop then keeps all that it uses. See GiveUp().
  ~RunFence() override;
  RunFence(const RunFence&) = delete;
  RunFence& operator=(const RunFence&) = delete;

  // Waits at most `limit`. Returns whether the run has ended. Fails with the error of the run, or of a run for which it
  // waited.
  absl::StatusOr<bool> Wait(std::chrono::nanoseconds limit);
  // Delays later work of a stream of the application until the run has ended. Waits here for work on devices of other backends
  // than that of the stream.
  absl::Status Delay(const NativeStream& stream);
  void EndIfOver() override { (void)Wait({}); }
  const Runtime& runtime() const { return *runtime_; }

 private:
  explicit RunFence(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  absl::Status Outcome();
  void End();

  const std::shared_ptr<Runtime> runtime_;        // destroyed last
  std::vector<std::shared_ptr<Device>> devices_;  // those of ends_
  std::vector<Instance::QueuePoint> ends_;        // constant after Start(); owned, destroyed with this object
  std::atomic<bool> ended_{true};                 // false while the run is in progress
  std::mutex mutex_;  // guards the members below; held while a run ends and collects failures of earlier runs
  absl::Status status_;
  bool stuck_ = false;  // true: the device does not stop, so ends_ is leaked
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Instance> instance_;  // nullptr: ended, or work on a stream of the application
  std::vector<HostValue> inputs_, outputs_;
  std::vector<std::shared_ptr<RunFence>> after_;  // runs whose failures this run passes on
  std::shared_ptr<RunFence> previous_;            // the run before this one on its stream; nullptr: none, or it has ended
};

// Releases a fence without waiting for its run. The run keeps what it uses until it has ended and somebody looks at
// ReleasedRuns().
void GiveUp(std::shared_ptr<RunFence> fence);

// Returns the runs of the process whose fences were given up before their end. They keep their runtime, so that it cannot
// hold them. Reclaim() frees those that have ended.
UnfinishedList& ReleasedRuns();

// The patience with such runs when a session or a runtime is released.
inline constexpr std::chrono::minutes kReleasedRunPatience{1};

// Waits until a run has ended, and returns its status in `*ended`. Fails if `control` asks to stop meanwhile.
absl::Status WaitForRun(RunFence& run, const RunState& control, absl::Status* ended);

}  // namespace mge
