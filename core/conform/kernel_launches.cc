// SPDX-License-Identifier: Apache-2.0
// Checks of launches: their heap memory, their order on the queue behind long work, and concurrent ones.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/conform/allocations.h"
#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

using Clock = std::chrono::steady_clock;

// Numbers of runs that overlapped others.
constexpr int kEnough = 1000;
constexpr int kFew = 30;  // below this, the time limit is extended, because other processes may use the processors

}  // namespace

// Several lanes run one kernel repeatedly, each with its own data. Each run must give the result that the lane gave alone.
void CheckConcurrentRuns(KernelRun& run) {
  Bytes alone[kLanes];  // the outputs of each lane when it runs alone
  const absl::Status right = StatusOf([&] {
    for (int lane = 0; lane < kLanes; ++lane) {
      run.RunSet(lane % 2, 1, 0xff, lane);
      alone[lane] = run.Outputs(lane);
    }
  });
  // The time limit is shorter for types other than float32, which usually share its source code.
  const auto limit = std::chrono::milliseconds(run.subject().dtype == DType::kF32 ? 100 : 30);
  const Clock::time_point begin = Clock::now();
  std::atomic<uint64_t> begun = 0;
  std::atomic<int> met = 0;
  auto over = [&] { return met >= kEnough || Clock::now() - begin >= limit * (met < kFew ? 5 : 1); };
  while (right.ok() && !over()) {  // other checks report results that are wrong alone
    std::atomic<bool> stop = false;
    InThreads(kLanes, [&](int lane) {
      for (uint32_t i = 0; !stop; ++i) {
        run.ResetOutputs(lane);
        const uint64_t mine = ++begun;
        const absl::Status ran = StatusOf([&] { run.Step(lane, 1 + i % 2, "beside other runs, the step"); });
        met += begun != mine;
        if (!ran.ok() || run.Outputs(lane) != alone[lane] || over()) stop = true;
        ThrowIfError(ran);
      }
    });
    // Compares with the reference, because other bytes than alone may be a different rounding.
    for (int lane = 0; lane < kLanes; ++lane) run.Expect(run.Collect(lane), lane % 2, "beside other runs, ");
  }
}

void CheckKernelAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds) {
  BackendUnderTest& s = bench.tested;
  const std::string where = fmt::format("{} {}", c.Name(), candidate.id);
  Apply(s.reporter(), kKernelAllocations, where, [&] {
    auto make = [&] {
      Enumerate(s, c);
      KernelRun(bench, c, candidate);
    };
    SurvivesFailures(s, make, seconds);
  });
  Apply(s.reporter(), kKernelAllocations, where, [&] {
    KernelRun kernel_run(bench, c, candidate);
    kernel_run.Stage(0, c.inputs[0], 0xff);
    SurvivesFailures(
        s, [&] { kernel_run.Step(0, 1, "launching"); }, seconds);
    kernel_run.Expect(kernel_run.Collect(0), 0, "after launches that failed, ");
  });
}

void CheckLaunchMemory(KernelRun& kernel_run) {
  if (!AllocationsAreSeen()) NotOffered("this program does not see allocations");
  kernel_run.Stage(0, kernel_run.subject().inputs[0], 0xff);
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 100 && least > 0; ++i) {  // a queue that reuses entries allocates them first
    {
      AllocationFailure none;
      kernel_run.Launch(0, 1);
      least = std::min(least, none.seen());
    }
    kernel_run.Drain(0);
  }
  if (least > 0)
    Broken("every launch allocates heap memory, at least {} times; allocate it in prepare, or set MGE_KERNEL_ALLOCATES",
           least);
}

void CheckQueueOrder(KernelRun& kernel_run) {
  CheckQueueOrder(kernel_run, kernel_run.subject().inputs, [&](const std::vector<Tensor>& outputs) {
    return kernel_run.Wrong(outputs, kernel_run.subject().expected[1]);
  });
}

void CheckQueueOrder(KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                     const std::function<std::string(const std::vector<Tensor>&)>& what_is_wrong) {
  constexpr auto kLong = std::chrono::milliseconds(2);  // longer than a launch
  Bench& bench = kernel_run.bench();
  if (!bench.transfers[0].has_queue()) NotOffered(kNoQueues);
  kernel_run.Stage(1, inputs[1], 0x5a);
  kernel_run.Stage(0, inputs[0], 0xff);
  if (!bench.long_work) bench.long_work.emplace(bench.tested);
  bench.long_work->Enqueue(bench.transfers[0].queue(), kLong);
  kernel_run.EnqueueCopy(1, 0);  // overwrites the outputs too, so earlier results are lost
  kernel_run.Step(0, 1, "behind other work, the step");
  if (std::string wrong = what_is_wrong(kernel_run.Collect(0)); !wrong.empty())
    Broken("{} does not read the input that a copy enqueued before it writes ({}); enqueue its work on run->queue",
           kernel_run.candidate().id, wrong);
}

}  // namespace mge::conform
