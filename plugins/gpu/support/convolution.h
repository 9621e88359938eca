// SPDX-License-Identifier: Apache-2.0
// Reads Conv, alone or with an epilogue, and ConvTranspose as one convolution.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// A convolution, with the numbers of its operands in the problem; -1: absent.
struct Convolution {
  ConvArgs args = {};  // without pointers
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int x = -1, w = -1, bias = -1, residual = -1;

  int64_t taps() const { return args.axis[0].kernel * args.axis[1].kernel * args.axis[2].kernel; }
  int64_t pixels() const { return args.axis[0].out * args.axis[1].out * args.axis[2].out; }
  int64_t depth() const { return args.channels / args.groups * taps(); }
  // Returns the number of tiles of tile x tile outputs.
  int64_t tiles(int64_t tile = 64) const {
    const auto count = [tile](int64_t n) { return (n + tile - 1) / tile; };
    return count(pixels()) * count(args.outputs / args.groups) * args.images * args.groups;
  }
};

// Reads a problem whose first node is a Conv. Refuses what no kernel computes.
Result FindConvolution(const Problem& p, Convolution* out);

// Reads a ConvTranspose. The axes have the sizes of its operands: `in` is what it reads, `out` what it writes.
Result FindTransposed(const Problem& p, Convolution* out);

}  // namespace mge::gpu
