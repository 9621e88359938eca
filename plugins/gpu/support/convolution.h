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
  int64_t tiles() const {
    return (pixels() + 63) / 64 * ((args.outputs / args.groups + 63) / 64) * args.images * args.groups;
  }
};

// Reads a problem whose first node is a Conv. Refuses what no kernel computes.
Result FindConvolution(const Problem& p, Convolution* out);

// Reads a ConvTranspose. The axes have the sizes of its operands: `in` is what it reads, `out` what it writes.
Result FindTransposed(const Problem& p, Convolution* out);

}  // namespace mge::gpu
