// SPDX-License-Identifier: Apache-2.0
// The limits of queues that work on a GPU at the same time, over all runs of a runtime: engine.gpu_worker_threads for
// compute queues, engine.gpu_copy_threads for copy queues.
//
// A run takes a permit before it enqueues work on a queue of a GPU, and gives it back when the run has ended. Queues of a
// run that never work at the same time share one: mostly, all inputs have been copied before the first output is. If none
// is free, a run that has a permit of this kind waits for its own queue, and uses that permit for the other queue. Otherwise
// it waits for all its queues, gives its permits back, and waits for the other runs. A run that waits for others so holds no
// permit, and no two runs wait for each other.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan.h"
#include "core/plugin/stop.h"

namespace mge {

// A run in progress that nobody may be waiting for, but that may have ended and holds permits.
class EnqueuedRun {
 public:
  virtual ~EnqueuedRun() = default;
  // Gives the permits of the run back if it has ended. Does not wait for devices.
  virtual void EndIfOver() = 0;
};

// The permits of all GPUs. Thread-safe. Taking and giving a permit needs no lock, except while a run waits for one.
class QueueLimits {
 public:
  enum Kind { kCompute, kCopy };
  // The permits for the queues of one kind on one GPU.
  class Permits {
   public:
    // Takes a permit if one is free.
    bool TryAcquire();

   private:
    friend class QueueLimits;
    int limit_ = 0;
    std::atomic<int> taken_{0};
  };

  // Sets the limits for each GPU, which must be positive.
  QueueLimits(int compute, int copies) : limits_{compute, copies} {}

  // Returns the permits of a GPU. They live as long as this object.
  Permits& Of(const std::string& device, Kind kind);
  // Acquires a permit. Waits for one. Fails if `stop` is set meanwhile.
  absl::Status Acquire(Permits& permits, const StopControl& stop);
  void Release(Permits& permits);
  // Adds a run that Acquire() must look at.
  void Add(std::weak_ptr<EnqueuedRun> run);

 private:
  // Returns the runs that are alive. Holds mutex_.
  std::vector<std::shared_ptr<EnqueuedRun>> Runs();

  const std::array<int, 2> limits_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::atomic<int> waiting_{0};                            // runs in Acquire()
  std::map<std::string, std::array<Permits, 2>> permits_;  // by device and kind
  std::vector<std::weak_ptr<EnqueuedRun>> runs_;
};

// Returns for each queue of a plan the number of the queue whose permit it uses: an earlier queue of the same device and
// kind of work that has ended in each run before this one begins, or itself.
std::vector<size_t> SharedPermits(const Plan& plan);
// Returns the kind of permit that a queue needs.
QueueLimits::Kind KindOf(const PlanQueue& queue);

}  // namespace mge
