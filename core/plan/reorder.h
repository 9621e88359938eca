// SPDX-License-Identifier: Apache-2.0
// The backend's way from one layout to another.
#pragma once

#include "core/plan/abi_graph.h"
#include "core/plan/candidate.h"
#include "core/plan/program.h"

namespace mge {

// The best of the device's candidates for that reorder of a tensor of `type`. kKernelFailed if it offers none.
absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode);
// As the plan's context has it, with any workspace.
absl::StatusOr<OwnedCandidate> ChooseReorder(const PlanContext& context, Device& device, const TensorType& type,
                                             const mge_layout& from, const mge_layout& to);

// What it is taken to cost: by the backend's estimate, or by the bytes where it gives none; very much where it offers none.
double ReorderCostUs(const PlanContext& context, Device& device, const TensorType& type, const mge_layout& from,
                     const mge_layout& to);

}  // namespace mge
