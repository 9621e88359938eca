// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cuda {

inline constexpr mge_setting kDriver =
    TextSetting("cuda.driver", "", "Absolute path of the driver's library; empty: libcuda.so.1 of the system.");

inline constexpr mge_setting kComputeQueues = IntSetting("cuda.compute_queues", "1", 1, 16, "queues",
                                                         "Number of streams of each device that plans use for parallel "
                                                         "branches of a model.");

inline constexpr mge_setting kCublasLt =
    TextSetting("cuda.cublaslt", "",
                "Absolute path of cuBLASLt, which computes matrix products; empty: libcublasLt.so.13 of the system, unless "
                "cuda.driver is set; off: kernels of this backend only.");

inline constexpr mge_setting kNvrtc = TextSetting(
    "cuda.nvrtc", "",
    "Absolute path of NVRTC, which compiles chains of elementwise operators; empty: libnvrtc.so.13 of the system, "
    "unless cuda.driver is set; off: chains are interpreted.");

inline constexpr mge_setting kCudnn =
    TextSetting("cuda.cudnn", "",
                "Absolute path of cuDNN, which computes convolutions; empty: libcudnn.so.9 "
                "of the system, unless cuda.driver is set; off: kernels of this backend only.");

inline constexpr mge_setting kNccl =
    TextSetting("cuda.nccl", "",
                "Absolute path of NCCL, which computes collective operators; empty: libnccl.so.2 of the system, unless "
                "cuda.driver is set; off: there are no collective operators.");

inline constexpr mge_setting kMemoryRate =
    DoubleSetting("cuda.memory_gb_s", "0", 0, 1e6, "GB/s",
                  "Measured rate of device memory (gpu-report.sh prints it), for the planner's estimates on all devices of "
                  "this backend; 0: 80% of the peak that the driver reports.");

inline constexpr mge_setting kComputeRate =
    DoubleSetting("cuda.compute_tflop_s", "0", 0, 1e6, "TFLOP/s",
                  "Measured rate of float32 products without tensor cores, for the planner's estimates on all devices of "
                  "this backend; 0: half of the peak that the driver's properties suggest.");

inline constexpr mge_setting kMatrixRate =
    DoubleSetting("cuda.matrix_tflop_s", "0", 0, 1e6, "TFLOP/s",
                  "Measured rate of float16 products by tensor cores, for the planner's estimates on all devices of this "
                  "backend; 0: 8 times the rate without tensor cores.");

}  // namespace mge::cuda
