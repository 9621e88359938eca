// SPDX-License-Identifier: Apache-2.0
// Reorders: kernels of a backend that copy a tensor from one layout to another.
#pragma once

#include <string>
#include <unordered_map>

#include "core/kernel/abi_graph.h"
#include "core/kernel/candidate.h"
#include "core/plan/plan_context.h"

namespace mge {

// Returns the device's best candidate for the reorder of a tensor of `type`. Leaves out the candidates in `unable`
// (nullable). Never measures: the mode PROFILE counts as HEURISTIC. Fails with kKernelFailed if there is no candidate.
absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode, const UnableKernels* unable = nullptr);
// Does the same with the threads, constraints and mode of the context, without a limit of the workspace.
absl::StatusOr<OwnedCandidate> ChooseReorder(const PlanContext& context, Device& device, const TensorType& type,
                                             const mge_layout& from, const mge_layout& to);

// Estimated times of reorders. Asks the backend once per reorder and stores the result. Not thread-safe.
class ReorderCosts {
 public:
  explicit ReorderCosts(const PlanContext& context) : context_(context) {}
  // Returns the estimated time in microseconds: the backend's estimate, else one computed from the bytes. If the backend has
  // no such reorder, returns a time that no plan accepts (1e9).
  double Us(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to);
  // Returns whether the layouts are equal or the backend has a reorder.
  bool Exists(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to);

 private:
  double Ask(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) const;

  const PlanContext& context_;
  std::unordered_map<std::string, double> known_;
};

}  // namespace mge
