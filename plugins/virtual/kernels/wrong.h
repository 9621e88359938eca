// SPDX-License-Identifier: Apache-2.0
// A kernel with a low estimate that is wrong: it fills the outputs of any problem with zeros. Offered only if the setting
// virtual.wrong_kernel is on, to test the host's checks of selected kernels.
#pragma once

#include "mge/plugin.hpp"

namespace mge::virtual_gpu {

inline constexpr uint64_t kWrongToken = UINT64_MAX;  // a token that no row has

void OfferWrong(const mge_problem* problem, const mge_constraints* constraints, const mge_candidate_sink* sink);
KernelPtr MakeWrong(const mge_problem* problem);

}  // namespace mge::virtual_gpu
