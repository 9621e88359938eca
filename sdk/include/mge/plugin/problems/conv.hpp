// SPDX-License-Identifier: Apache-2.0
// Reads convolutions: Conv, ConvInteger, QLinearConv, their gradients, and ConvTranspose.
#pragma once

#include "mge/plugin/problems/window.hpp"

namespace mge MGE_HIDDEN {

// The sizes of a convolution apart from its axes.
struct ConvSizes {
  int64_t images = 0;
  int64_t channels = 0, outputs = 0;  // of all groups: of what the convolution reads and computes
  int64_t groups = 1;
};

// Reads the convolution of `x` (images, channels, ...) by the filter `w` (outputs, channels / groups, ...) to `y`, and its
// axes (ReadWindow()). An image without pixels can still have padding, so only empty outputs and filters are refused.
template <typename Axis>
Result ReadConv(const Node& node, const Value& x, const Value& w, const Value& y, ConvSizes* sizes, Axis* axis) {
  if (w.rank() != x.rank()) return {MGE_INVALID_ARGUMENT, "the filter's rank is not the input's"};
  if (x.rank() < 3) return {MGE_UNIMPLEMENTED, "one to three spatial axes only"};
  if (Result r = ReadWindow(node, x, y, w.dims().subspan(2), axis); !r.ok()) return r;
  if (y.elements() == 0 || w.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  *sizes = {x.dim(0), x.dim(1), w.dim(0), node.Int("group")};
  if (sizes->groups < 1 || sizes->channels != sizes->groups * w.dim(1) || sizes->outputs % sizes->groups) {
    return {MGE_INVALID_ARGUMENT, "the groups do not divide the channels"};
  }
  return {};
}

// Reads a ConvTranspose. The filter is (channels, outputs / groups, ...). Each axis is that of the convolution which the
// operator runs backwards, but `in` is the size that the operator reads and `out` the one that it computes: input i contributes
// through tap k to output i * stride - pad_begin + k * dilation.
template <typename Axis>
Result ReadConvTranspose(const Node& node, ConvSizes* sizes, Axis* axis) {
  const Value x = node.input(0), w = node.input(1), y = node.output(0);
  if (w.rank() != x.rank()) return {MGE_INVALID_ARGUMENT, "the filter's rank is not the input's"};
  if (x.rank() < 3) return {MGE_UNIMPLEMENTED, "one to three spatial axes only"};
  if (node.Word("auto_pad") != "NOTSET" || node.attr("output_shape")) return {MGE_UNIMPLEMENTED, "pads that are not known"};
  if (Result r = ReadWindow(node, x, y, w.dims().subspan(2), axis); !r.ok()) return r;
  if (y.elements() == 0 || w.elements() == 0 || x.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  *sizes = {x.dim(0), x.dim(1), w.dim(1) * node.Int("group"), node.Int("group")};
  if (sizes->groups < 1 || w.dim(0) != sizes->channels || sizes->channels % sizes->groups) {
    return {MGE_INVALID_ARGUMENT, "the groups do not divide the channels"};
  }
  return {};
}

}  // namespace MGE_HIDDEN
