// SPDX-License-Identifier: Apache-2.0
// Checks concurrent runs of one kernel. Several lanes run it repeatedly, each with its own data. Each run must give the
// result that the lane gave when it ran alone.
#include <atomic>
#include <chrono>

#include "core/conform/kernel_checks.h"

namespace mge::conform {
namespace {

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

}  // namespace mge::conform
