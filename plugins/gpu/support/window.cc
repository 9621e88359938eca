// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/window.h"

#include <algorithm>

namespace mge::gpu {

Result ReadWindow(const Node& node, const Value& x, const Value& y, std::span<const int64_t> kernel, WindowAxis* axis) {
  if (x.rank() < 3 || x.rank() > 5 || y.rank() != x.rank()) return {MGE_UNIMPLEMENTED, "one to three spatial axes only"};
  size_t axes = static_cast<size_t>(x.rank()) - 2;
  auto strides = node.Ints("strides"), dilations = node.Ints("dilations"), pads = node.Ints("pads");
  auto fits = [](auto list, size_t size) { return list.empty() || list.size() == size; };
  if (kernel.size() != axes || !fits(strides, axes) || !fits(dilations, axes) || !fits(pads, 2 * axes)) {
    return {MGE_UNIMPLEMENTED, "a window attribute has a wrong length"};
  }
  std::string_view automatic = node.Word("auto_pad", "NOTSET");
  for (size_t d = 0; d < 3 - axes; ++d) axis[d] = {1, 1, 1, 1, 1, 0, 0};
  for (size_t d = 0; d < axes; ++d) {
    WindowAxis a = {x.dims()[d + 2],
                    y.dims()[d + 2],
                    kernel[d],
                    strides.empty() ? 1 : strides[d],
                    dilations.empty() ? 1 : dilations[d],
                    0,
                    0};
    if (a.kernel <= 0 || a.stride <= 0 || a.dilation <= 0) return {MGE_UNIMPLEMENTED, "a window attribute is not positive"};
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t total = std::max<int64_t>(0, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in);
      a.pad_begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      a.pad_end = total - a.pad_begin;
    } else if (automatic == "NOTSET" && !pads.empty()) {
      a.pad_begin = pads[d];
      a.pad_end = pads[d + axes];
    }
    axis[3 - axes + d] = a;
  }
  return {};
}

}  // namespace mge::gpu
