// SPDX-License-Identifier: Apache-2.0
// The functions of the driver in software, with the parameters of plugins/gpu/runtime/functions.h.
#pragma once

#include "plugins/gpu/runtime/functions.h"

namespace mge::software::driver {

#define GPU_DRIVER_DECLARE(member, cuda, hip, parameters, arguments) int member parameters;
GPU_DRIVER_FUNCTIONS(GPU_DRIVER_DECLARE)
GPU_CUDA_FUNCTIONS(GPU_DRIVER_DECLARE)
GPU_HIP_FUNCTIONS(GPU_DRIVER_DECLARE)
GPU_HIP_OLD_FUNCTIONS(GPU_DRIVER_DECLARE)
#undef GPU_DRIVER_DECLARE

}  // namespace mge::software::driver
