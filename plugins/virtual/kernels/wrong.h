// SPDX-License-Identifier: Apache-2.0
// A kernel that seems fast and is wrong: whatever the problem, it fills the outputs with zeros. Offered only if the setting
// virtual.wrong_kernel asks for it, so that the host's checks of what it selects have something to find.
#pragma once

#include "mge/plugin.hpp"

namespace mge::virtual_gpu {

inline constexpr uint64_t kWrongToken = UINT64_MAX;  // of no row

void OfferWrong(const mge_problem* problem, const mge_constraints* constraints, const mge_candidate_sink* sink);
KernelPtr MakeWrong(const mge_problem* problem);

}  // namespace mge::virtual_gpu
