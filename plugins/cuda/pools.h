// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool by cuDNN.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cuda {

extern const KernelFamily mge_kernels_pools;

}  // namespace mge::cuda
