// SPDX-License-Identifier: Apache-2.0
// Checks concurrent runs of one kernel. Several lanes run it repeatedly, each with its own data. Each run must give the
// result that the lane gave when it ran alone.
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/conform/kernel_checks.h"
#include "fmt/format.h"

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
  ConcurrentRuns(KernelRun& kernel_run, const Case& c, const Candidate& candidate)
      : run_(kernel_run), case_(c), candidate_(candidate) {}

  // Runs each lane alone and stores its outputs. Returns NotOffered() if a result is wrong, which other checks report.
  absl::Status Alone() {
    for (int lane = 0; lane < kLanes; ++lane) {
      MGE_ASSIGN_OR_RETURN(RunResult r, run_.Run(lane, case_.inputs[lane % 2], 1, 0xff));
      if (r.step.code != MGE_OK || !WhatIsWrong(r, case_.expected[lane % 2], candidate_).empty())
        return NotOffered("it is wrong alone");
      MGE_ASSIGN_OR_RETURN(alone_[lane], run_.Outputs(lane));
    }
    begin_ = Clock::now();
    return absl::OkStatus();
  }
  bool over() const { return met_ >= kEnough || Clock::now() - begin_ >= TimeFor(case_) * (met_ < kFew ? 5 : 1); }

  // Runs all lanes concurrently until over() is true or a lane gives other bytes. Then compares with the reference, because
  // other bytes may be a different rounding. Returns Broken() if a result is wrong.
  absl::Status Run() {
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
      if (std::string wrong = WhatIsWrong(r, case_.expected[lane % 2], candidate_); !wrong.empty())
        return Broken("beside other runs, " + wrong);
    }
    return absl::OkStatus();
  }

 private:
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
  const Case& case_;
  const Candidate& candidate_;
  Bytes alone_[kLanes];
  Clock::time_point begin_;
  std::atomic<uint64_t> begun_ = 0;
  std::atomic<int> met_ = 0;
  std::atomic<bool> stop_ = false;
};

}  // namespace

absl::Status CheckConcurrentRuns(KernelRun& kernel_run, const Case& c, const Candidate& candidate) {
  ConcurrentRuns runs(kernel_run, c, candidate);
  if (absl::Status alone = runs.Alone(); !alone.ok()) return IsNotOffered(alone) ? absl::OkStatus() : alone;
  while (!runs.over()) MGE_RETURN_IF_ERROR(runs.Run());
  return absl::OkStatus();
}

}  // namespace mge::conform
