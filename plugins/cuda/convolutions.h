// SPDX-License-Identifier: Apache-2.0
// Conv by cuDNN, alone or with an epilogue.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cuda {

extern const KernelFamily mge_kernels_convolutions;

}  // namespace mge::cuda
