// SPDX-License-Identifier: Apache-2.0
// Conv with one to three spatial dimensions, with or without an epilogue, as numbers.
#pragma once

#include "mge/plugin.hpp"
#include "support/epilogue.h"
#include "vec/gemm.h"

namespace mge::cpu {

// A convolution. One spatial dimension, or an image of width 1, becomes an image of height 1. If there are three dimensions,
// those that the filter does not mix are merged into others, so that depth is 1 if possible.
struct Convolution {
  int64_t batch = 0;  // batch size of the operands
  // number of images: the batch, times the layers if each layer is convolved alone
  int64_t images = 0;
  int64_t channels = 0, outputs = 0;  // of all groups
  int64_t groups = 1;
  ConvWindows windows = {};                                                 // for one group; pixel = channels
  int rank = 4;                                                             // rank of the operands
  int x = -1, weights = -1, bias = -1, add = -1;                            // operand numbers; bias and add are -1 if absent
  bool x_constant = false, weights_constant = false, add_constant = false;  // constants are always plain
  bool weights_state = false;                                               // packed before each run if a kernel wants it
  Epilogue epilogue;

  // Returns whether depth could not be merged.
  bool volume() const { return windows.d != 1 || windows.kd != 1 || windows.od != 1 || windows.pd != 0; }
  int64_t in_pixels() const { return windows.d * windows.h * windows.w; }  // per image
  int64_t out_pixels() const { return windows.od * windows.oh * windows.ow; }
  int64_t taps() const { return windows.kd * windows.kh * windows.kw; }
  int64_t rows() const { return images * out_pixels(); }
  int64_t k() const { return taps() * windows.channels; }
  // Returns whether every group has one channel. Each channel then has multiplier() outputs.
  bool depthwise() const { return groups == channels && groups > 1; }
  int64_t multiplier() const { return outputs / groups; }
  int64_t group_channels() const { return channels / groups; }
  // Returns whether the input's pixels can be used as the rows of the product without a copy.
  bool pointwise() const {
    const ConvWindows& w = windows;
    return taps() == 1 && w.sh == 1 && w.sw == 1 && w.oh == w.h && w.ow == w.w && w.ph == 0 && w.pw == 0 && !volume();
  }
};

// The most channels of a group that kernels convolve one after another. Products are faster for larger groups.
inline constexpr int64_t kMaxGroupPasses = 16;

// Estimates the copy of an image that has every element as often as its channel has outputs, to `elements` elements.
inline double RepeatUs(int64_t elements) {
  constexpr double kNsPerElement = 0.4;
  return 1e-3 * kNsPerElement * static_cast<double>(elements);
}

// Reads the geometry of a convolution of image x and filter w with output y, from the attributes of `n`. All shapes must be
// known. Leaves the operand numbers, the types, the bias and the epilogue to the caller.
Result ReadConvolution(const Node& n, const Value& x, const Value& w, const Value& y, Convolution* out);

// Reads the geometry of a convolution by the problem's first node, whose inputs x_input and w_input are the image and the
// filter. All shapes must be known. Leaves the types, the bias and the epilogue to the caller.
Result FindConvolution(const Problem& p, int x_input, int w_input, Convolution* out);

// Reads the convolution of a problem of float32. Fails with the reason if it is not supported. All shapes must be known.
Result FindConvolution(const Problem& p, Convolution* out);

}  // namespace mge::cpu
