// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/unable.h"

#include "core/plan/kernels/problem_key.h"
#include "core/plan/plan_context.h"

namespace mge {
namespace {

// Returns the key of a problem without constraints: prepare() does not receive them, so its result cannot depend on them.
std::string NameOf(const Device& device, const mge_problem& problem) { return KeyOf(device, problem, 0, 0).choice; }

}  // namespace

bool UnableKernels::Add(const Device& device, const mge_problem& problem, const std::string& kernel, std::string reason) {
  std::string name = NameOf(device, problem);
  std::lock_guard lock(mutex_);
  const bool is_new = reasons_.try_emplace({std::move(name), kernel}, std::move(reason)).second;
  count_.store(reasons_.size(), std::memory_order_release);
  return is_new;
}

bool UnableKernels::Knows(const Device& device, const mge_problem& problem, const std::string& kernel) const {
  if (count() == 0) return false;
  std::pair<std::string, std::string> key = {NameOf(device, problem), kernel};
  std::lock_guard lock(mutex_);
  return reasons_.contains(key);
}

void UnableKernels::Remove(const Device& device, const mge_problem& problem, CandidateList& list) const {
  if (count() == 0) return;
  const std::string name = NameOf(device, problem);
  std::lock_guard lock(mutex_);
  std::erase_if(list.offered, [&](const OwnedCandidate& c) {
    auto known = reasons_.find({name, c.id});
    if (known == reasons_.end()) return false;
    list.refused.push_back({c.id, known->second});
    return true;
  });
}

absl::StatusOr<CandidateList> CandidatesOf(const PlanContext& context, Device& device, const mge_problem& problem,
                                           const mge_constraints& constraints) {
  MGE_ASSIGN_OR_RETURN(CandidateList list, EnumerateCandidates(device, problem, constraints));
  context.caches->unable.Remove(device, problem, list);
  return list;
}

}  // namespace mge
