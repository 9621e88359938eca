// SPDX-License-Identifier: Apache-2.0
// Matrix products by rocBLAS.
#pragma once

#include "mge/plugin.hpp"

namespace mge::rocm {

extern const KernelFamily mge_kernels_products;

}  // namespace mge::rocm
