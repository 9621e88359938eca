// SPDX-License-Identifier: Apache-2.0
// Sums over processes in a thread of their own, while the plans of the replicas go on.
//
// The thread runs them one after the other, in the order in which they were submitted. All processes submit the same ones in
// the same order, because tokens order the nodes of their plans. So no process waits for a sum that another one begins later.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/status.h"
#include "core/base/thread.h"

namespace mge {

// Thread-safe.
class SumQueue {
 public:
  // A sum. It must end soon after the group of its ranks is aborted.
  using Job = std::function<absl::Status()>;

  SumQueue() = default;
  ~SumQueue();  // waits for the present job, and drops the others
  SumQueue(const SumQueue&) = delete;
  SumQueue& operator=(const SumQueue&) = delete;

  // Adds a job of this key. No other one of the key may be submitted before Wait().
  void Submit(uint32_t key, Job job);
  // Returns the status of the job when it has ended. It stays until the next job of the key.
  absl::Status Wait(uint32_t key);

  // Returns the time that jobs have taken, and the time that callers of Wait() have waited, in microseconds.
  std::pair<double, double> Times() const;

 private:
  struct State {
    bool ended = false;
    absl::Status status = {};
  };
  void Run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<uint32_t, Job>> jobs_;  // guarded by mutex_, as all below
  std::map<uint32_t, State> states_;           // by key
  bool stops_ = false;
  double busy_us_ = 0, waited_us_ = 0;
  Thread thread_;
};

}  // namespace mge
