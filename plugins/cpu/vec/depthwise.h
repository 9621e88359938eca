// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last images: every channel has its own filter.
#pragma once

#include "vec/gemm.h"

namespace mge::cpu {

// A depthwise convolution.
struct DepthwiseTask {
  const float* x;
  float* y;
  const float* weights;  // (kh, kw, channels)
  const float* bias;     // per channel, or null
  const float* add;      // same shape as y, or null; may be y
  int64_t channels;
  int64_t h, w, kh, kw, sh, sw, ph, pw, dh, dw, oh, ow;
  int64_t parts;  // number of parts per output row
  Activation activation;
  float lo, hi;
};

struct DepthwiseTable {
  // Computes parts p0..p1 of the output's rows; part = (image * oh + y) * parts + number.
  void (*run)(const DepthwiseTask& task, int64_t p0, int64_t p1);
};

MGE_CPU_DISPATCH(DepthwiseTable, Depthwise)

}  // namespace mge::cpu
