// SPDX-License-Identifier: Apache-2.0
// Kernels that a backend offered for a problem and then could not prepare: the plans of a session leave them out.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/plan/candidate.h"
#include "core/plugin/device.h"

namespace mge {

struct PlanContext;

// Safe on any thread.
class UnableKernels {
 public:
  // Remembers that the kernel cannot be prepared for the problem. False if that was known: the backend offers it all the same,
  // and asking again leads nowhere.
  bool Add(const Device& device, const mge_problem& problem, const std::string& kernel, std::string reason);
  // Moves the candidates that are known to be unable from the offers to the refusals.
  void Remove(const Device& device, const mge_problem& problem, CandidateList& list) const;

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> reasons_;  // by problem and kernel
};

// The candidates that the device offers for a problem within the constraints, without those that proved to be unable.
absl::StatusOr<CandidateList> CandidatesOf(const PlanContext& context, Device& device, const mge_problem& problem,
                                           const mge_constraints& constraints);

}  // namespace mge
