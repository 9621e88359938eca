// SPDX-License-Identifier: Apache-2.0
// Reads Conv, alone or with an epilogue, its gradient by the weights, and ConvTranspose as one convolution.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"
#include "mge/plugin/problems/conv.hpp"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/support/packing.h"

namespace mge::gpu {

// A convolution, with the numbers of the problem's inputs; -1: absent.
struct Convolution {
  ConvArgs args = {};  // without pointers
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int x = -1, w = -1, bias = -1, residual = -1;
  int y = -1;  // read by the gradient by w, which is the output

  int64_t taps() const { return args.axis[0].kernel * args.axis[1].kernel * args.axis[2].kernel; }
  int64_t pixels() const { return args.axis[0].out * args.axis[1].out * args.axis[2].out; }
  int64_t depth() const { return args.channels / args.groups * taps(); }
  // Return the number of tiles of tile x tile outputs. With the channels last, a tile may have pixels of several images.
  int64_t tiles(int64_t tile = 64) const {
    const auto count = [tile](int64_t n) { return (n + tile - 1) / tile; };
    return count(pixels()) * count(args.outputs / args.groups) * args.images * args.groups;
  }
  int64_t nhwc_tiles(int64_t tile = 64) const {
    const auto count = [tile](int64_t n) { return (n + tile - 1) / tile; };
    return count(args.images * pixels()) * count(args.outputs / args.groups) * args.groups;
  }
  // Returns the packing of a filter to (outputs, window, channels / groups), or, if transposed, to (channels, window, outputs
  // / groups): the order of kernels and libraries with the channels last.
  Packing FilterPacking(bool transposed = false) const {
    return {transposed ? args.channels : args.outputs, (transposed ? args.outputs : args.channels) / args.groups, taps(),
            ElementBytes(type)};
  }
  void SetSizes(const ConvSizes& s) {
    args.images = s.images;
    args.channels = s.channels;
    args.outputs = s.outputs;
    args.groups = s.groups;
  }
  // Returns whether each channel is a group with one output.
  bool depthwise() const { return args.groups == args.channels && args.groups == args.outputs; }
};

// Returns whether the kernels named nhwc can compute it: the input and the residual are no constants, which have the plain
// layout, and indices fit in 32 bits.
bool FitsNhwc(const Problem& p, const Convolution& conv);

// Reads the sizes of a convolution of x with a filter w, the window and the groups.
Result FindSizes(const Node& n, const Value& x, const Value& w, const Value& y, Convolution* out);

// Reads a problem whose first node is a Conv. Refuses what no kernel computes.
Result FindConvolution(const Problem& p, Convolution* out);

// Reads a mge.ConvWeightGradient.
Result FindWeightGradient(const Problem& p, Convolution* out);

// Reads a ConvTranspose. The axes have the sizes of its operands: `in` is what it reads, `out` what it writes.
Result FindTransposed(const Problem& p, Convolution* out);

}  // namespace mge::gpu
