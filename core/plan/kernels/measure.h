// SPDX-License-Identifier: Apache-2.0
// Times the candidates of a group on their device, and compares their results with those of the reference evaluators.
//
// An estimate may be wrong by a factor, and a kernel of a backend may compute wrong results. The strategy PROFILE therefore
// runs every candidate before it chooses. Algorithm:
//   1. Creates inputs (fill.h) and the expected outputs. Small problems are computed by the core's evaluators, whose plain
//      loops are the meaning of an operator. For a problem of more than 2^28 operations they take about a second, so a
//      kernel of the device that is marked as reference is used. If one of the two is missing or fails, the other is used.
//      For more than 2^30 operations the evaluators are not used: without such a kernel, results are not checked.
//   2. A kernel that always writes one value passes wherever that value is right. If an expected output is one value
//      throughout, adds samples with other inputs until it is not, or until all kinds of inputs were tried.
//   3. Runs each candidate on each sample and compares the outputs within a tolerance (tolerance.h).
//   4. Times up to 8 runs after 2 warm ones, within MeasureLimits::seconds, and returns the least time. A step that may be
//      captured is replayed, as in a plan. A candidate whose second run takes more than 10 times as long as the best one is
//      not run again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/kernels/selection.h"

namespace mge {

// The result for one candidate.
struct Measurement {
  double us = -1;          // least time of the timed runs, in microseconds; negative: not timed
  std::string fault;       // the reason why it failed or was not timed; if it was timed: why its results were not checked
  bool wrong = false;      // true: its results differ from the reference
  bool unchecked = false;  // true: there was no reference, or the samples cannot reveal a wrong kernel
  bool kept = false;       // true: a later measurement would find the same, so it may be stored
  double limit_s = 0;      // greater than 0: under this time limit, its process was killed or crashed (timing_workers.h)
};

// Receives the progress of MeasureCandidates(), for a process that a candidate may end.
class MeasureObserver {
 public:
  virtual ~MeasureObserver() = default;
  virtual void Begin(const std::string& candidate) = 0;  // the candidate runs next
  virtual void End() = 0;                                // no candidate runs
  virtual void Result(const std::string& candidate, const Measurement& measurement) = 0;
};

// Returns a measurement for each element of `which`, the indices of offered candidates. Results of random operators are not
// checked. A candidate that fails or is wrong has a measurement with a fault. If limits.stop is set, returns the
// measurements that are complete, so there may be fewer than `which`. Fails only if no candidate can be measured.
absl::StatusOr<std::vector<Measurement>> MeasureCandidates(const Graph& graph, const Group& group,
                                                           std::span<const int> which, uint32_t threads,
                                                           const MeasureLimits& limits);

}  // namespace mge
