// SPDX-License-Identifier: Apache-2.0
// Conv over one to three spatial dimensions, with or without an epilogue, as numbers.
#pragma once

#include "mge/plugin.hpp"
#include "support/epilogue.h"
#include "vec/gemm.h"

namespace mge::cpu {

// One spatial dimension is an image of height 1, and so is an image of width 1. Of three dimensions, those that the filter
// does not mix are merged into others, so that depth is 1 where it can be.
struct Convolution {
  int64_t batch = 0;                              // of the operands
  int64_t images = 0;                             // the batch, times the layers if each is convolved alone
  int64_t channels = 0, outputs = 0;              // all groups together
  int64_t groups = 1;
  ConvWindows windows = {};                       // of one group; pixel = channels
  int rank = 4;                                   // of the operands
  int x = -1, weights = -1, bias = -1, add = -1;  // operands; bias and add are -1 where there is none
  bool x_constant = false, weights_constant = false, add_constant = false;  // they come plain
  Epilogue epilogue;

  // Returns true if depth could not be merged.
  bool volume() const { return windows.d != 1 || windows.kd != 1 || windows.od != 1 || windows.pd != 0; }
  int64_t in_pixels() const { return windows.d * windows.h * windows.w; }  // of an image
  int64_t out_pixels() const { return windows.od * windows.oh * windows.ow; }
  int64_t taps() const { return windows.kd * windows.kh * windows.kw; }
  int64_t rows() const { return images * out_pixels(); }
  int64_t k() const { return taps() * windows.channels; }
  bool depthwise() const { return groups == channels && outputs == channels && groups > 1 && !volume(); }
  // True if the input's pixels are the rows of the product as they lie.
  bool pointwise() const {
    const ConvWindows& w = windows;
    return taps() == 1 && w.sh == 1 && w.sw == 1 && w.oh == w.h && w.ow == w.w && w.ph == 0 && w.pw == 0 && !volume();
  }
};

// The convolution that a problem asks for, or why it is none of ours. All shapes must be known.
Result FindConvolution(const Problem& p, Convolution* out);

}  // namespace mge::cpu
