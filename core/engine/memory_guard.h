// SPDX-License-Identifier: Apache-2.0
// Finds out which kernel writes outside of its memory (debug.check_memory): fills the guards of a plan's buffers when they
// begin to live, and looks at them after every step.
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

// For one run at a time of a plan that is guarded, from one thread. `bases` are the instance's. A step on a queue has ended
// before AfterStep.
class MemoryGuard {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryGuard>> Create(const Plan& plan, std::span<void* const> bases);

  void BeginRun(const StopControl& stop);
  absl::Status BeforeStep(const Step& step);
  // kKernelFailed: names the kernel, and the buffer beside which it wrote.
  absl::Status AfterStep(const Step& step);
  // Whether it touches nothing of the instance's any more. After a failed run; waits, at most so long.
  bool Over(std::chrono::nanoseconds patience);

 private:
  struct Watched {
    const PlacedBuffer* buffer;
    SyncQueue* queue;  // nullptr: in memory that the host reaches
    std::span<std::byte> front, behind;
  };
  explicit MemoryGuard(const Plan& plan) : plan_(plan) {}
  absl::Status Fill(const Watched& watched, std::span<std::byte> guard) const;
  absl::Status Look(const Step& step, const Watched& watched, const char* side, std::span<std::byte> guard) const;

  const Plan& plan_;
  std::vector<std::unique_ptr<SyncQueue>> queues_;  // of each arena; nullptr where the host reaches its memory
  std::vector<Watched> buffers_;                    // by the step at which their lives begin
  std::vector<size_t> alive_;                       // indices
  const StopControl* stop_ = nullptr;               // of the run
  size_t next_ = 0;                                 // of those that did not live yet
};

}  // namespace mge
