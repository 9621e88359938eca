// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"

namespace mge::rocm {

inline constexpr mge_setting kDriver =
    TextSetting("rocm.driver", "", "Absolute path of the driver's library; empty: libamdhip64.so of the system.");

inline constexpr mge_setting kComputeQueues = IntSetting("rocm.compute_queues", "1", 1, 16, "queues",
                                                         "Number of streams of each device that plans use for parallel "
                                                         "branches of a model.");

}  // namespace mge::rocm
