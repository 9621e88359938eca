// SPDX-License-Identifier: Apache-2.0
// The random state of an instance: the keys and Philox counters of its random kernels, in memory that their steps access.
// They are data, not arguments, so that replays of a record draw new numbers.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/instance_queues.h"
#include "core/engine/run_state.h"
#include "core/plan/plan.h"
#include "core/plugin/memory/pool.h"

namespace mge {

// The memory behind the bases of Plan::random. Not thread-safe. The plan must outlive it. Enqueued work that reads it must
// have ended when it is destroyed.
class RandomBuffers {
 public:
  // Allocates the memory and sets its bases. Fails with kOverBudget or kOutOfMemory.
  static absl::StatusOr<std::unique_ptr<RandomBuffers>> Create(const Plan& plan, std::vector<void*>& bases);
  ~RandomBuffers();
  RandomBuffers(const RandomBuffers&) = delete;
  RandomBuffers& operator=(const RandomBuffers&) = delete;

  // Writes the key and the counters of a run, and advances control.next_random. On a queue, enqueues their copy to the
  // device. `queues` may be null if no base is on a queue.
  absl::Status BeginRun(RunState& control, const InstanceQueues* queues);

 private:
  struct Buffer {
    const RandomBase* base = nullptr;
    Pool* host_pool = nullptr;
    Pool* device_pool = nullptr;  // nullptr: steps read the host memory
    mge_reservation host = {}, device = {};
  };
  RandomBuffers() = default;
  std::vector<Buffer> buffers_;
};

}  // namespace mge
