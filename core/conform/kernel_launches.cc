// SPDX-License-Identifier: Apache-2.0
// Checks of launches: their heap memory, their order on the queue, and concurrent ones.
//
// Each allocation fails once, and a launch must not allocate. The kernel's input is copied over the queue, behind long work. A
// kernel that does not run on the queue reads the old input. Several lanes run one kernel repeatedly, each with its own data.
// Each run must give the result that the lane gave when it ran alone.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr int kLaunches = 100;  // attempts to find one without allocations: a queue that reuses entries allocates them first

// The time of the work in front of the copy of an input: longer than a launch.
constexpr auto kLong = std::chrono::milliseconds(2);

using Clock = std::chrono::steady_clock;

// Numbers of runs that overlapped others.
constexpr int kEnough = 1000;
constexpr int kFew = 30;  // below this, the time limit is extended, because other processes may use the processors

// Returns the time limit. It is shorter for types other than float32, which usually share its source code.
Clock::duration TimeFor(const Case& c) { return std::chrono::milliseconds(c.dtype == DType::kF32 ? 100 : 30); }

class ConcurrentRuns {
 public:
  explicit ConcurrentRuns(KernelRun& kernel_run) : run_(kernel_run) {}

  // Runs each lane alone, and stores its outputs. Then runs all lanes concurrently until over() is true. Throws Broken() if a
  // result is wrong, but not if it is wrong alone, which other checks report.
  void Check() {
    const absl::Status alone = StatusOf([&] {
      for (int lane = 0; lane < kLanes; ++lane) {
        run_.RunSet(lane % 2, 1, 0xff, lane);
        alone_[lane] = run_.Outputs(lane);
      }
    });
    begin_ = Clock::now();
    while (alone.ok() && !over()) RunAll();
  }

 private:
  bool over() const { return met_ >= kEnough || Clock::now() - begin_ >= TimeFor(run_.subject()) * (met_ < kFew ? 5 : 1); }
  // Runs all lanes until over() is true or a lane gives other bytes. Then compares with the reference, because other bytes may
  // be a different rounding.
  void RunAll() {
    stop_ = false;
    InThreads(kLanes, [&](int lane) { RunLane(lane); });
    for (int lane = 0; lane < kLanes; ++lane) run_.Expect(run_.Collect(lane), lane % 2, "beside other runs, ");
  }
  void RunLane(int lane) {
    for (uint32_t i = 0; !stop_; ++i) {
      bool same = false;
      const absl::Status ran = StatusOf([&] { same = RunOnce(lane, 1 + i % 2); });
      if (!same || over()) stop_ = true;
      ThrowIfError(ran);
    }
  }
  // Runs the lane once. Returns whether its outputs equal those of the run alone.
  bool RunOnce(int lane, uint32_t width) {
    run_.ResetOutputs(lane);
    const uint64_t mine = ++begun_;
    run_.Step(lane, width, "beside other runs, the step");
    if (begun_ != mine) ++met_;
    return run_.Outputs(lane) == alone_[lane];
  }

  KernelRun& run_;
  Bytes alone_[kLanes];
  Clock::time_point begin_;
  std::atomic<uint64_t> begun_ = 0;
  std::atomic<int> met_ = 0;
  std::atomic<bool> stop_ = false;
};

}  // namespace

void CheckConcurrentRuns(KernelRun& kernel_run) { ConcurrentRuns(kernel_run).Check(); }

void CheckKernelAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds) {
  BackendUnderTest& s = bench.tested;
  auto apply = [&, where = fmt::format("{} {}", c.Name(), candidate.id)](const std::function<void()>& work) {
    Apply(s.reporter(), kKernelAllocations, where, work);
  };
  auto make = [&] {
    Enumerate(s, c);
    KernelRun(bench, c, candidate);
  };
  apply([&] { SurvivesFailures(s, make, seconds); });
  apply([&] {
    KernelRun kernel_run(bench, c, candidate);
    kernel_run.Stage(0, c.inputs[0], 0xff);
    auto launch = [&] { kernel_run.Step(0, 1, "launching"); };
    SurvivesFailures(s, launch, seconds);
    kernel_run.Expect(kernel_run.Collect(0), 0, "after launches that failed, ");
  });
}

void CheckLaunchMemory(KernelRun& kernel_run) {
  if (!AllocationsAreSeen()) NotOffered("this program does not see allocations");
  kernel_run.Stage(0, kernel_run.subject().inputs[0], 0xff);
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kLaunches && least > 0; ++i) {
    {
      AllocationFailure none;
      kernel_run.Launch(0, 1);
      least = std::min(least, none.seen());
    }
    kernel_run.Drain(0);
  }
  if (least > 0)
    Broken(
        "every launch allocates heap memory, at least {} times; allocate it when the kernel is prepared, request "
        "workspace, or set MGE_KERNEL_ALLOCATES",
        least);
}

void CheckQueueOrder(KernelRun& kernel_run) {
  CheckQueueOrder(kernel_run, kernel_run.subject().inputs, [&](const std::vector<Tensor>& outputs) {
    return kernel_run.Wrong(outputs, kernel_run.subject().expected[1]);
  });
}

void CheckQueueOrder(KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                     const std::function<std::string(const std::vector<Tensor>&)>& what_is_wrong) {
  constexpr int kLane = 0, kSource = 1;
  Bench& bench = kernel_run.bench();
  if (!bench.transfers[kLane].has_queue()) NotOffered(kNoQueues);
  kernel_run.Stage(kSource, inputs[1], 0x5a);
  kernel_run.Stage(kLane, inputs[0], 0xff);
  if (!bench.long_work) bench.long_work.emplace(bench.tested);
  bench.long_work->Enqueue(bench.transfers[kLane].queue(), kLong);
  kernel_run.EnqueueCopy(kSource, kLane);  // overwrites the outputs too, so earlier results are lost
  kernel_run.Step(kLane, 1, "behind other work, the step");
  if (std::string wrong = what_is_wrong(kernel_run.Collect(kLane)); !wrong.empty())
    Broken(
        "{} does not run in order on run->queue: it did not read the input that a copy enqueued before "
        "it writes ({}); enqueue its work on run->queue, not in the calling thread or on another stream",
        kernel_run.candidate().id, wrong);
}

}  // namespace mge::conform
