// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/runtime/vendor_settings.h"

namespace mge::cuda {

inline constexpr const char* kToolkit = "jit.cuda_path";  // the host's setting with the folder of the CUDA toolkit

inline constexpr mge_setting kDriver =
    TextSetting("cuda.driver", "", "Absolute path of the driver's library; empty: libcuda.so.1 of the system.");
inline constexpr mge_setting kCublasLt = GPU_LIBRARY_SETTING("cuda", "cublaslt", "cuBLASLt", "computes matrix products",
                                                             "libcublasLt.so.13", "kernels of this backend only");
inline constexpr mge_setting kNvrtc = GPU_LIBRARY_SETTING(
    "cuda", "nvrtc", "NVRTC", "compiles chains of elementwise operators", "libnvrtc.so.13", "chains are interpreted");
inline constexpr mge_setting kCudnn =
    GPU_LIBRARY_SETTING("cuda", "cudnn", "cuDNN", "computes convolutions", "libcudnn.so.9", "kernels of this backend only");
inline constexpr mge_setting kNccl = GPU_LIBRARY_SETTING("cuda", "nccl", "NCCL", "computes collective operators",
                                                         "libnccl.so.2", "there are no collective operators");
inline constexpr mge_setting kComputeQueues = GPU_QUEUES_SETTING("cuda");
inline constexpr mge_setting kMemoryRate = GPU_MEMORY_RATE_SETTING("cuda");
inline constexpr mge_setting kComputeRate = GPU_COMPUTE_RATE_SETTING("cuda", "tensor cores");
inline constexpr mge_setting kMatrixRate = GPU_RATE_SETTING(
    "cuda", "matrix_tflop_s", "TFLOP/s", "float16 products by tensor cores", "8 times the rate without tensor cores");

}  // namespace mge::cuda
