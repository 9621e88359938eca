// SPDX-License-Identifier: Apache-2.0
// Reads the windows of pools and convolutions: MaxPool, AveragePool, LpPool, Conv and its kin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/problems/operands.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// One spatial axis of a window. Output o reads the input at o * stride - pad_begin + k * dilation for each tap k < kernel.
// Positions outside of [0, in) are padding. Negative pads crop the input.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// Fills axis[3], for depth, height and width, from the node's attributes; missing leading axes have size 1. `in`, `out` and
// `kernel` have the sizes of the input, the output and the window along the axes. Axis is WindowAxis, or a struct with the same
// members in the same order. Fails with MGE_UNIMPLEMENTED if there are not one to three axes.
template <typename Axis>
Result ReadWindow(const Node& node, std::span<const int64_t> in, std::span<const int64_t> out,
                  std::span<const int64_t> kernel, Axis* axis) {
  const size_t count = in.size();
  if (count < 1 || count > 3 || out.size() != count) return {MGE_UNIMPLEMENTED, "one to three spatial axes only"};
  const std::span<const int64_t> strides = node.Ints("strides"), pads = node.Ints("pads");
  const bool dilates = node.attr("dilations") != nullptr;  // MaxUnpool has none
  const std::span<const int64_t> dilations = node.Ints("dilations");
  if (kernel.size() != count || strides.size() != count || pads.size() != 2 * count ||
      (dilates && dilations.size() != count)) {
    return {MGE_UNIMPLEMENTED, "a window attribute has a wrong length"};
  }
  const std::string_view automatic = node.Word("auto_pad");
  for (size_t d = 0; d < 3 - count; ++d) axis[d] = Axis{1, 1, 1, 1, 1, 0, 0};
  for (size_t d = 0; d < count; ++d) {
    Axis a = {in[d], out[d], kernel[d], strides[d], dilates ? dilations[d] : 1, pads[d], pads[d + count]};
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {  // only if the host does not know the sizes
      const int64_t total = std::max<int64_t>(0, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in);
      a.pad_begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      a.pad_end = total - a.pad_begin;
    }
    axis[3 - count + d] = a;
  }
  return {};
}

// The same of a window that reads `x` and computes `y`, whose dimensions after the first two are spatial.
template <typename Axis>
Result ReadWindow(const Node& node, const Value& x, const Value& y, std::span<const int64_t> kernel, Axis* axis) {
  if (x.rank() < 3 || y.rank() < 3) return {MGE_UNIMPLEMENTED, "one to three spatial axes only"};
  return ReadWindow(node, x.dims().subspan(2), y.dims().subspan(2), kernel, axis);
}

// Reads the window of a pool.
template <typename Axis>
Result ReadWindow(const Node& node, Axis* axis) {
  return ReadWindow(node, node.input(0), node.output(0), node.Ints("kernel_shape"), axis);
}

// Reads Col2Im: the image `in` whose windows are the `out` columns. The sizes must be constant.
template <typename Axis>
Result ReadCol2Im(const Node& node, Axis* axis) {
  std::vector<int64_t> image, block, columns;
  if (!ConstantInts(node, 1, image) || !ConstantInts(node, 2, block)) return {MGE_UNIMPLEMENTED, "a size is not constant"};
  const size_t count = image.size();
  const std::span<const int64_t> strides = node.Ints("strides"), pads = node.Ints("pads"),
                                 dilations = node.Ints("dilations");
  if (block.size() != count || strides.size() != count || pads.size() != 2 * count || dilations.size() != count) {
    return {MGE_UNIMPLEMENTED, "a window attribute has a wrong length"};
  }
  for (size_t d = 0; d < count; ++d) {
    columns.push_back((image[d] + pads[d] + pads[d + count] - (block[d] - 1) * dilations[d] - 1) / strides[d] + 1);
  }
  return ReadWindow(node, image, columns, block, axis);
}

}  // namespace MGE_HIDDEN
