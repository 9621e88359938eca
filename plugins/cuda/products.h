// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm by cuBLASLt, alone or with an epilogue.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cuda {

extern const KernelFamily mge_kernels_products;

}  // namespace mge::cuda
