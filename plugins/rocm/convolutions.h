// SPDX-License-Identifier: Apache-2.0
// Conv by MIOpen, alone or with an epilogue.
#pragma once

#include "mge/plugin.hpp"

namespace mge::rocm {

extern const KernelFamily mge_kernels_convolutions;

}  // namespace mge::rocm
