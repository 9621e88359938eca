// SPDX-License-Identifier: Apache-2.0
// Reads scales, whose type is known at run time. Included by kernels only.
#pragma once

#include "mge/types.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Returns element i of an array of scales of an mge_dtype.
GPU_DEVICE float ScaleAt(const void* scales, int32_t type, int64_t i) {
  switch (type) {
    case MGE_DTYPE_F16: return Widen(static_cast<const f16*>(scales)[i]);
    case MGE_DTYPE_BF16: return Widen(static_cast<const bf16*>(scales)[i]);
    default: return static_cast<const float*>(scales)[i];
  }
}

}  // namespace mge::gpu
