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

}  // namespace mge::cuda
