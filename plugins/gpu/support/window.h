// SPDX-License-Identifier: Apache-2.0
// Windows of pools and convolutions, read from a node's attributes.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// Fills axis[3] for the spatial axes of x and y (one to three, after images and channels). Missing leading axes have size 1.
Result ReadWindow(const Node& node, std::span<const int64_t> kernel, WindowAxis* axis);

}  // namespace mge::gpu
