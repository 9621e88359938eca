// SPDX-License-Identifier: Apache-2.0
// The sums of a transposed convolution: each output pixel gathers what input pixels contribute to it through the taps.
#pragma once

#include "vec/gemm.h"

namespace mge::cpu {

// The taps through which one output position is reached: first_tap + t * step from input first - t * back, for t < count.
struct Col2ImTaps {
  int64_t first_tap, first, count;
};

// Depth, height or width.
struct Col2ImAxis {
  int64_t in, kernel, out;
  int64_t step, back;
  const Col2ImTaps* taps;  // of each output position
};

struct Col2ImTask {
  const float* columns;  // (input pixel, group, tap, channel of the group); with weights: the image (input pixel, channel)
  const float* weights;  // (tap, channel) of a depthwise convolution, which has one group here; otherwise null
  float* y;              // (output pixel, group, channel of the group)
  const float* bias;     // per channel of all groups, or null
  const float* add;      // as large as y, or null; may be y
  Col2ImAxis axes[3];
  int64_t groups, channels;
  Activation activation;
  float lo, hi;
};

struct Col2ImTable {
  // Rows r0..r1 of the output; row = (image * depth + z) * height + y.
  void (*run)(const Col2ImTask& task, int64_t r0, int64_t r1);
};

MGE_CPU_DISPATCH(Col2ImTable, Col2Im)

}  // namespace mge::cpu
