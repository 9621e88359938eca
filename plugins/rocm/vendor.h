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

inline constexpr mge_setting kHiprtc =
    TextSetting("rocm.hiprtc", "",
                "Absolute path of hiprtc, which compiles chains of elementwise operators; empty: libhiprtc.so.7 or .6, or "
                "libamdhip64.so.5 of the system, unless rocm.driver is set; off: chains are interpreted.");

inline constexpr mge_setting kRccl =
    TextSetting("rocm.rccl", "",
                "Absolute path of RCCL, which computes collective operators; empty: librccl.so.1 of the system, unless "
                "rocm.driver is set; off: there are no collective operators.");

inline constexpr mge_setting kRocblas =
    TextSetting("rocm.rocblas", "",
                "Absolute path of rocBLAS, which computes matrix products; empty: librocblas.so.5, .4 or .0 of the system, "
                "unless rocm.driver is set; off: kernels of this backend only.");

inline constexpr mge_setting kMiopen =
    TextSetting("rocm.miopen", "",
                "Absolute path of MIOpen, which computes convolutions; empty: libMIOpen.so.1 of the system, unless "
                "rocm.driver is set; off: kernels of this backend only.");

inline constexpr mge_setting kMemoryRate =
    DoubleSetting("rocm.memory_gb_s", "0", 0, 1e6, "GB/s",
                  "Measured rate of device memory (gpu-report.sh prints it), for the planner's estimates on all devices of "
                  "this backend; 0: 80% of the peak that the driver reports.");

inline constexpr mge_setting kComputeRate =
    DoubleSetting("rocm.compute_tflop_s", "0", 0, 1e6, "TFLOP/s",
                  "Measured rate of float32 products without matrix units, for the planner's estimates on all devices of "
                  "this backend; 0: half of the peak that the driver's properties suggest.");

}  // namespace mge::rocm
