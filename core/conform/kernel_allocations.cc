// SPDX-License-Identifier: Apache-2.0
// Checks of heap memory in kernels: each allocation fails once, and a launch must not allocate.
#include <algorithm>

#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr int kLaunches = 100;  // attempts to find one without allocations: a queue that reuses entries allocates them first

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
    std::string wrong = WhatIsWrong(r, c.expected[0], candidate);
    return wrong.empty() ? absl::OkStatus() : Broken("after launches that failed, " + wrong);
  }();
  for (const absl::Status& status : {made, launched}) {
    if (IsNotOffered(status)) continue;
    s.reporter().Applied(kKernelAllocations);
    if (!status.ok())
      s.reporter().Found(kKernelAllocations, fmt::format("{} {}", c.Name(), candidate.id), Std(status.message()));
  }
}

absl::Status CheckLaunchMemory(KernelRun& kernel_run, const Case& c) {
  if (!AllocationsAreSeen()) return NotOffered("this program does not see allocations");
  MGE_RETURN_IF_ERROR(kernel_run.Stage(0, c.inputs[0], 0xff));
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

}  // namespace mge::conform
