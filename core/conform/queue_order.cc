// SPDX-License-Identifier: Apache-2.0
// Checks that kernels run in order on their queue. The kernel's input is copied over the queue, behind long work. A kernel
// that does not run on the queue reads the old input.
#include <chrono>

#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

// The time of the work in front of the copy: longer than a launch.
constexpr auto kLong = std::chrono::milliseconds(2);

}  // namespace

absl::Status CheckQueueOrder(Bench& bench, KernelRun& kernel_run, const Case& c, const Candidate& candidate) {
  return CheckQueueOrder(bench, kernel_run, c.inputs,
                         [&](const RunResult& r) { return WhatIsWrong(r, c.expected[1], candidate); });
}

absl::Status CheckQueueOrder(Bench& bench, KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                             const std::function<std::string(const RunResult&)>& what_is_wrong) {
  constexpr int kLane = 0, kSource = 1;
  if (!bench.transfers[kLane].has_queue()) return NotOffered(kNoQueues);
  MGE_RETURN_IF_ERROR(kernel_run.Stage(kSource, inputs[1], 0x5a));
  MGE_RETURN_IF_ERROR(kernel_run.Stage(kLane, inputs[0], 0xff));
  if (!bench.long_work) {
    MGE_ASSIGN_OR_RETURN(bench.long_work, LongWork::Create(bench.tested));
  }
  MGE_RETURN_IF_ERROR(bench.long_work->Enqueue(bench.transfers[kLane].queue(), kLong));
  MGE_RETURN_IF_ERROR(kernel_run.EnqueueCopy(kSource, kLane));  // overwrites the outputs too, so earlier results are lost
  MGE_RETURN_IF_ERROR(kernel_run.Step(kLane, 1, "behind other work, the step"));
  MGE_ASSIGN_OR_RETURN(RunResult r, kernel_run.Collect(kLane));
  std::string wrong = what_is_wrong(r);
  if (wrong.empty()) return absl::OkStatus();
  return Broken(
      "the kernel does not run in order on run->queue: it did not read the input that a copy enqueued before "
      "it writes ({}); enqueue its work on run->queue, not in the calling thread or on another stream",
      wrong);
}

}  // namespace mge::conform
