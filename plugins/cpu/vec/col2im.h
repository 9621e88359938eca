// SPDX-License-Identifier: Apache-2.0
// The sums of a transposed convolution: each output pixel sums the contributions of input pixels through the taps.
#pragma once

#include "vec/gemm.h"

namespace mge::cpu {

// The taps that reach one output position: tap first_tap + t * step from input first - t * back, for t < count.
struct Col2ImTaps {
  int64_t first_tap, first, count;
};

// One spatial axis: depth, height or width.
struct Col2ImAxis {
  int64_t in, kernel, out;
  int64_t step, back;
  const Col2ImTaps* taps;  // for each output position
};

struct Col2ImTask {
  // (input pixel, group, tap, channel of the group); if `weights` is set, the image (input pixel, channel)
  const float* columns;
  const float* weights;  // (tap, channel) of a depthwise convolution, which has one group here; otherwise null
  float* y;              // (output pixel, group, channel of the group)
  const float* bias;     // per channel of all groups, or null
  const float* add;      // same shape as y, or null; may be y
  Col2ImAxis axes[3];
  int64_t groups, channels;
  Activation activation;
  float lo, hi;
};

struct Col2ImTable {
  // Computes rows r0..r1 of the output; row = (image * depth + z) * height + y.
  void (*run)(const Col2ImTask& task, int64_t r0, int64_t r1);
};

MGE_CPU_DISPATCH(Col2ImTable, Col2Im)

}  // namespace mge::cpu
