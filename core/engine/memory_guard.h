// SPDX-License-Identifier: Apache-2.0
// Finds out which kernel writes outside of its memory (debug.check_memory): fills the guards of a plan's buffers when they
// begin to live, and looks at them after every step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan.h"

namespace mge {

// For one run at a time of a plan that is guarded and has no queues, from one thread. `bases` are the instance's.
class MemoryGuard {
 public:
  MemoryGuard(const Plan& plan, std::span<void* const> bases);

  void BeginRun();
  void BeforeStep(const Step& step);
  // kKernelFailed: names the kernel, and the buffer beside which it wrote.
  absl::Status AfterStep(const Step& step) const;

 private:
  struct Watched {
    const PlacedBuffer* buffer;
    std::span<std::byte> front, behind;
  };
  absl::Status Overwritten(const Step& step, const Watched& watched, const char* side, std::span<std::byte> guard) const;

  const Plan& plan_;
  std::vector<Watched> buffers_;  // by the step at which their lives begin
  std::vector<size_t> alive_;     // indices
  size_t next_ = 0;               // of those that did not live yet
};

}  // namespace mge
