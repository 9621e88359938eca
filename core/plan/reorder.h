// SPDX-License-Identifier: Apache-2.0
// The backend's way from one layout to another.
#pragma once

#include "core/plan/abi_graph.h"
#include "core/plan/candidate.h"

namespace mge {

// The best of the device's candidates for that reorder of a tensor of `type`. kKernelFailed if it offers none.
absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode);

}  // namespace mge
