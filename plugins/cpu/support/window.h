// SPDX-License-Identifier: Apache-2.0
// Windows of pooling and convolution, read from a node's attributes.
#pragma once

#include <cstdint>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::cpu {

// One spatial axis. Output o reads the input at o * stride - pad_begin + k * dilation for k < kernel. Positions outside of
// [0, in) are padding.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// Reads strides, dilations, pads and auto_pad for known spatial sizes. Fails if a list has a wrong length, or a stride or
// dilation is not positive.
Result ReadWindow(const Node& node, std::span<const int64_t> in, std::span<const int64_t> out,
                  std::span<const int64_t> kernel, std::vector<WindowAxis>* window);

}  // namespace mge::cpu
