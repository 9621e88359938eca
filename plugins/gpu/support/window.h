// SPDX-License-Identifier: Apache-2.0
// Windows of pools and convolutions, read from a node's attributes.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// Fill axis[3] for the spatial axes of what the window reads and of the result (one to three, after images and channels): of
// x and y, or of the node's first input and output. Missing leading axes have size 1.
Result ReadWindow(const Node& node, const Value& x, const Value& y, std::span<const int64_t> kernel, WindowAxis* axis);
inline Result ReadWindow(const Node& node, std::span<const int64_t> kernel, WindowAxis* axis) {
  return ReadWindow(node, node.input(0), node.output(0), kernel, axis);
}

}  // namespace mge::gpu
