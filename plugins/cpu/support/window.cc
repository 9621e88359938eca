// SPDX-License-Identifier: Apache-2.0
#include "support/window.h"

#include <algorithm>

namespace mge::cpu {

Result ReadWindow(const Node& node, std::span<const int64_t> in, std::span<const int64_t> out,
                  std::span<const int64_t> kernel, std::vector<WindowAxis>* window) {
  size_t axes = in.size();
  auto strides = node.Ints("strides"), dilations = node.Ints("dilations"), pads = node.Ints("pads");
  auto fits = [](auto list, size_t size) { return list.empty() || list.size() == size; };
  if (out.size() != axes || kernel.size() != axes || !fits(strides, axes) || !fits(dilations, axes) ||
      !fits(pads, 2 * axes)) {
    return {MGE_UNIMPLEMENTED, "a window attribute has a wrong length"};
  }
  std::string_view automatic = node.Word("auto_pad", "NOTSET");
  window->clear();
  for (size_t d = 0; d < axes; ++d) {
    WindowAxis a;
    a.in = in[d];
    a.out = out[d];
    a.kernel = kernel[d];
    a.stride = strides.empty() ? 1 : strides[d];
    a.dilation = dilations.empty() ? 1 : dilations[d];
    if (a.kernel <= 0 || a.stride <= 0 || a.dilation <= 0) return {MGE_UNIMPLEMENTED, "a window attribute is not positive"};
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t total = std::max<int64_t>(0, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in);
      a.pad_begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      a.pad_end = total - a.pad_begin;
    } else if (automatic == "NOTSET" && !pads.empty()) {
      a.pad_begin = pads[d];
      a.pad_end = pads[d + axes];
    }
    window->push_back(a);
  }
  return {};
}

}  // namespace mge::cpu
