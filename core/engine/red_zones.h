// SPDX-License-Identifier: Apache-2.0
// Finds the kernel that writes outside of its memory (debug.check_memory). Fills the red zones around each buffer of a plan
// when the buffer's life begins, and checks them after every step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan.h"
#include "core/plugin/sync_queue.h"

namespace mge {

// The red zones of one instance of a plan that has them (Plan::red_zones). Used for one run at a time, by one thread.
class RedZones {
 public:
  // `bases` are the bases of the instance's arenas. The plan and the arenas must outlive the result.
  static absl::StatusOr<std::unique_ptr<RedZones>> Create(const Plan& plan, std::span<void* const> bases);

  // Starts a run. `stop` must live until the run ends.
  void BeginRun(const StopControl& stop);
  // Fills the red zones of buffers that this step is the first to use.
  absl::Status BeforeStep(const Step& step);
  // Checks the red zones. The step must have ended, also on its queue. Fails with kKernelFailed, which names the kernel and
  // the buffer beside which it wrote.
  absl::Status AfterStep(const Step& step);
  // Waits, after a failed run, at most `patience` for the copies of the red zones. Returns false if they have not ended.
  bool Over(std::chrono::nanoseconds patience);

 private:
  // A buffer with its two red zones.
  struct Watched {
    const PlacedBuffer* buffer;
    SyncQueue* queue;  // nullptr: the host can access the memory
    std::span<std::byte> before, after;
  };
  explicit RedZones(const Plan& plan) : plan_(plan) {}
  absl::Status Fill(const Watched& watched, std::span<std::byte> zone) const;
  absl::Status Look(const Step& step, const Watched& watched, const char* side, std::span<std::byte> zone) const;

  const Plan& plan_;
  std::vector<std::unique_ptr<SyncQueue>> queues_;  // one per arena; nullptr if the host can access its memory
  std::vector<Watched> buffers_;                    // sorted by the step that uses them first
  std::vector<size_t> alive_;                       // indices of the buffers that are alive
  const StopControl* stop_ = nullptr;               // stop flag of the run
  size_t next_ = 0;                                 // index of the first buffer that no step has used
};

}  // namespace mge
