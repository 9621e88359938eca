// SPDX-License-Identifier: Apache-2.0
// Checks of launches: their heap memory, and their order on the queue. Each allocation fails once, and a launch must not
// allocate. The kernel's input is copied over the queue, behind long work. A kernel that does not run on the queue reads the
// old input.
#include <algorithm>
#include <chrono>

#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr int kLaunches = 100;  // attempts to find one without allocations: a queue that reuses entries allocates them first

// The time of the work in front of the copy of an input: longer than a launch.
constexpr auto kLong = std::chrono::milliseconds(2);

}  // namespace

void CheckKernelAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds) {
  BackendUnderTest& s = bench.tested;
  s.reporter().Begin(kKernelAllocations);
  auto survives = [&](const std::function<absl::Status()>& work) {
    absl::Status status = SurvivesFailures(s, work, seconds);
    if (IsNotOffered(status)) s.reporter().NotOffered(kKernelAllocations, Std(status.message()));
    return status;
  };
  absl::Status made = survives([&]() -> absl::Status {
    MGE_RETURN_IF_ERROR(Enumerate(s, c).status());
    return KernelRun::Create(bench, c, candidate, {}).status();
  });
  absl::Status launched = [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> kernel_run, KernelRun::Create(bench, c, candidate, {}));
    MGE_RETURN_IF_ERROR(kernel_run->Stage(0, c.inputs[0], 0xff));
    MGE_RETURN_IF_ERROR(survives([&] { return kernel_run->Step(0, 1, "launching"); }));
    MGE_ASSIGN_OR_RETURN(RunResult r, kernel_run->Collect(0));
    std::string wrong = kernel_run->Wrong(r, 0);
    return wrong.empty() ? absl::OkStatus() : Broken("after launches that failed, " + wrong);
  }();
  for (const absl::Status& status : {made, launched}) {
    if (IsNotOffered(status)) continue;
    s.reporter().Applied(kKernelAllocations);
    if (!status.ok())
      s.reporter().Found(kKernelAllocations, fmt::format("{} {}", c.Name(), candidate.id), Std(status.message()));
  }
}

absl::Status CheckLaunchMemory(KernelRun& kernel_run) {
  if (!AllocationsAreSeen()) return NotOffered("this program does not see allocations");
  MGE_RETURN_IF_ERROR(kernel_run.Stage(0, kernel_run.subject().inputs[0], 0xff));
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kLaunches && least > 0; ++i) {
    {
      AllocationFailure none(0, false, nullptr);
      kernel_run.Launch(0, 1);
      least = std::min(least, none.seen());
    }
    MGE_RETURN_IF_ERROR(kernel_run.Drain(0));
  }
  if (least == 0) return absl::OkStatus();
  return Broken(
      "every launch allocates heap memory, at least {} times; allocate it when the kernel is prepared, request "
      "workspace, or set MGE_KERNEL_ALLOCATES",
      least);
}

absl::Status CheckQueueOrder(KernelRun& kernel_run) {
  return CheckQueueOrder(kernel_run, kernel_run.subject().inputs,
                         [&](const RunResult& r) { return kernel_run.Wrong(r, 1); });
}

absl::Status CheckQueueOrder(KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                             const std::function<std::string(const RunResult&)>& what_is_wrong) {
  constexpr int kLane = 0, kSource = 1;
  Bench& bench = kernel_run.bench();
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
