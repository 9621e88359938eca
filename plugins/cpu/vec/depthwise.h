// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last images: every channel has a filter of its own.
#pragma once

#include "vec/gemm.h"

namespace mge::cpu {

struct DepthwiseTask {
  const float* x;
  float* y;
  const float* weights;  // (kh, kw, channels)
  const float* bias;     // per channel, or null
  const float* add;      // as large as y, or null; may be y
  int64_t channels;
  int64_t h, w, kh, kw, sh, sw, ph, pw, dh, dw, oh, ow;
  Activation activation;
  float lo, hi;
};

struct DepthwiseTable {
  // Rows r0..r1 of the output; row = image * oh + y.
  void (*run)(const DepthwiseTask& task, int64_t r0, int64_t r1);
};

MGE_CPU_DISPATCH(DepthwiseTable, Depthwise)

}  // namespace mge::cpu
