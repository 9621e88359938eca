// SPDX-License-Identifier: Apache-2.0
// The backend's way from one layout to another.
#pragma once

#include <map>
#include <string>

#include "core/plan/abi_graph.h"
#include "core/plan/candidate.h"
#include "core/plan/program.h"

namespace mge {

// The best of the device's candidates for that reorder of a tensor of `type`, without those that are known to be `unable`
// (nullable). kKernelFailed if it offers none.
absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode, const UnableKernels* unable = nullptr);
// As the plan's context has it, with any workspace.
absl::StatusOr<OwnedCandidate> ChooseReorder(const PlanContext& context, Device& device, const TensorType& type,
                                             const mge_layout& from, const mge_layout& to);

// What reorders are taken to cost: by the backend's estimate, or by the bytes where it gives none; very much where it offers
// none. Each is asked for once.
class ReorderCosts {
 public:
  explicit ReorderCosts(const PlanContext& context) : context_(context) {}
  double Us(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to);

 private:
  double Ask(Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) const;

  const PlanContext& context_;
  std::map<std::string, double> known_;
};

}  // namespace mge
