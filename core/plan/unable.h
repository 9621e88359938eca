// SPDX-License-Identifier: Apache-2.0
// Kernels that a backend offered for a problem and then could not prepare (MGE_UNIMPLEMENTED). Plans of a session leave them
// out.
#pragma once

#include <atomic>
#include <cstddef>
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
  // Remembers that the kernel cannot be prepared for the problem.
  void Add(const Device& device, const mge_problem& problem, const std::string& kernel, std::string reason);
  bool Knows(const Device& device, const mge_problem& problem, const std::string& kernel) const;
  // Moves the candidates that are known to be unable from the offers to the refusals.
  void Remove(const Device& device, const mge_problem& problem, CandidateList& list) const;
  // The number of kernels and problems that were added.
  size_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<size_t> count_{0};  // of reasons_
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::string> reasons_;  // by problem and kernel
};

// The candidates that the device offers for a problem within the constraints, without those that proved to be unable.
absl::StatusOr<CandidateList> CandidatesOf(const PlanContext& context, Device& device, const mge_problem& problem,
                                           const mge_constraints& constraints);

}  // namespace mge
