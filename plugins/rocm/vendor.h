// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/runtime/vendor_settings.h"

namespace mge::rocm {

inline constexpr mge_setting kDriver =
    TextSetting("rocm.driver", "", "Absolute path of the driver's library; empty: libamdhip64.so of the system.");
inline constexpr mge_setting kHiprtc =
    GPU_LIBRARY_SETTING("rocm", "hiprtc", "hiprtc", "compiles chains of elementwise operators",
                        "libhiprtc.so.7 or .6, or libamdhip64.so.5", "chains are interpreted");
inline constexpr mge_setting kRccl = GPU_LIBRARY_SETTING("rocm", "rccl", "RCCL", "computes collective operators",
                                                         "librccl.so.1", "there are no collective operators");
inline constexpr mge_setting kRocblas = GPU_LIBRARY_SETTING("rocm", "rocblas", "rocBLAS", "computes matrix products",
                                                            "librocblas.so.5, .4 or .0", "kernels of this backend only");
inline constexpr mge_setting kMiopen = GPU_LIBRARY_SETTING("rocm", "miopen", "MIOpen", "computes convolutions",
                                                           "libMIOpen.so.1", "kernels of this backend only");
inline constexpr mge_setting kComputeQueues = GPU_QUEUES_SETTING("rocm");
inline constexpr mge_setting kMemoryRate = GPU_MEMORY_RATE_SETTING("rocm");
inline constexpr mge_setting kComputeRate = GPU_COMPUTE_RATE_SETTING("rocm", "matrix units");

}  // namespace mge::rocm
