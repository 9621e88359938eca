// SPDX-License-Identifier: Apache-2.0
// Kernels that a backend offered for a problem, but that cannot be used: prepare() returned MGE_UNIMPLEMENTED, or there is no
// reorder for a layout of theirs. Later plans of the session leave them out.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/kernel/candidate.h"
#include "core/plugin/device.h"

namespace mge {

struct PlanContext;  // core/plan/plan_context.h

// A set of such kernels with their problems. Safe on any thread.
class UnableKernels {
 public:
  // Adds a kernel that cannot be used for the problem. Returns false if it was added before.
  bool Add(const Device& device, const mge_problem& problem, const std::string& kernel, std::string reason);
  // Returns true if the kernel was added for an equal problem.
  bool Knows(const Device& device, const mge_problem& problem, const std::string& kernel) const;
  // Moves the kernels of this set from list.offered to list.refused.
  void Remove(const Device& device, const mge_problem& problem, CandidateList& list) const;
  // Returns the number of pairs of kernel and problem.
  size_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<size_t> count_{0};  // size of reasons_
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> reasons_;  // by problem and kernel
};

// Returns the device's candidates for a problem within the constraints, without the kernels of context.caches->unable.
absl::StatusOr<CandidateList> CandidatesOf(const PlanContext& context, Device& device, const mge_problem& problem,
                                           const mge_constraints& constraints);

}  // namespace mge
