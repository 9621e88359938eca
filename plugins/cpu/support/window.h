// SPDX-License-Identifier: Apache-2.0
// Windows of pooling and convolution: attributes of a node brought to numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::cpu {

// One spatial axis. Output o reads the input at o * stride - pad_begin + k * dilation for k < kernel; what lies outside of
// [0, in) is padding.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// Reads strides, dilations, pads and auto_pad for spatial sizes that are known. Fails where lists have a wrong length or
// hold what is not positive.
Result ReadWindow(const Node& node, std::span<const int64_t> in, std::span<const int64_t> out,
                  std::span<const int64_t> kernel, std::vector<WindowAxis>* window);

}  // namespace mge::cpu
