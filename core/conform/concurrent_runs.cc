// SPDX-License-Identifier: Apache-2.0
// Checks concurrent runs of one kernel. Several lanes run it repeatedly, each with its own data. Each run must give the
// result that the lane gave when it ran alone.
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

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

  // Runs each lane alone, and stores its outputs. Then runs all lanes concurrently until over() is true. Returns Broken() if a
  // result is wrong, but not if it is wrong alone, which other checks report.
  absl::Status Check() {
    for (int lane = 0; lane < kLanes; ++lane) {
      MGE_ASSIGN_OR_RETURN(RunResult r, run_.Run(lane, run_.subject().inputs[lane % 2], 1, 0xff));
      if (r.step.code != MGE_OK || !run_.Wrong(r, lane % 2).empty()) return absl::OkStatus();
      MGE_ASSIGN_OR_RETURN(alone_[lane], run_.Outputs(lane));
    }
    begin_ = Clock::now();
    while (!over()) MGE_RETURN_IF_ERROR(RunAll());
    return absl::OkStatus();
  }

 private:
  bool over() const { return met_ >= kEnough || Clock::now() - begin_ >= TimeFor(run_.subject()) * (met_ < kFew ? 5 : 1); }
  // Runs all lanes until over() is true or a lane gives other bytes. Then compares with the reference, because other bytes may
  // be a different rounding.
  absl::Status RunAll() {
    stop_ = false;
    absl::Status status[kLanes];
    std::vector<std::thread> others;
    try {
      for (int lane = 1; lane < kLanes; ++lane) others.emplace_back([&, lane] { status[lane] = RunLane(lane); });
    } catch (const std::system_error&) {  // the limit on threads: continue with those that were started
    }
    status[0] = RunLane(0);
    for (std::thread& t : others) t.join();
    for (int lane = 0; lane < kLanes; ++lane) {
      MGE_RETURN_IF_ERROR(status[lane]);
      MGE_ASSIGN_OR_RETURN(RunResult r, run_.Collect(lane));
      if (std::string wrong = run_.Wrong(r, lane % 2); !wrong.empty()) return Broken("beside other runs, " + wrong);
    }
    return absl::OkStatus();
  }
  absl::Status RunLane(int lane) {
    absl::Status status;
    for (uint32_t i = 0; !stop_; ++i) {
      absl::StatusOr<bool> same = RunOnce(lane, 1 + i % 2);
      status = same.status();
      if (!same.ok() || !*same || over()) stop_ = true;
    }
    return status;
  }
  // Runs the lane once. Returns whether its outputs equal those of the run alone.
  absl::StatusOr<bool> RunOnce(int lane, uint32_t width) {
    MGE_RETURN_IF_ERROR(run_.ResetOutputs(lane));
    const uint64_t mine = ++begun_;
    MGE_RETURN_IF_ERROR(run_.Step(lane, width, "beside other runs, the step"));
    if (begun_ != mine) ++met_;
    MGE_ASSIGN_OR_RETURN(Bytes outputs, run_.Outputs(lane));
    return outputs == alone_[lane];
  }

  KernelRun& run_;
  Bytes alone_[kLanes];
  Clock::time_point begin_;
  std::atomic<uint64_t> begun_ = 0;
  std::atomic<int> met_ = 0;
  std::atomic<bool> stop_ = false;
};

}  // namespace

absl::Status CheckConcurrentRuns(KernelRun& kernel_run) { return ConcurrentRuns(kernel_run).Check(); }

}  // namespace mge::conform
