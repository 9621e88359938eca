// SPDX-License-Identifier: Apache-2.0
// Arguments of softmax and of normalisations.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

// Rows in registers (rows.cu): a thread has kRowPacks packs of 16 bytes of a dense row. A warp, of 32 threads at least, or a block
// of kRowThreads has one row at a time.
inline constexpr int kRowPacks = 4, kRowThreads = 256;
inline constexpr int kWarpRowBytes = 32 * kRowPacks * 16, kBlockRowBytes = kRowThreads * kRowPacks * 16;

// y = softmax (or its logarithm) of x (outer, n, inner) along n; rows = outer * inner.
struct SoftmaxArgs {
  const void* x;
  void* y;
  int64_t rows, n;
  Divisor inner;
  int32_t log, reserved;
};

// Normalises contiguous rows of n elements: y = (x - mean) / sqrt(variance + epsilon) * scale + bias. A row belongs to group
// row % groups. Its element i has scale number group * group_channels + i / channel_elements. If `channels` is not 0, x is
// (images, channel_elements, channels), and a row has group_channels neighbours of each pixel of an image; n is below 2^31. If
// `centred` is 0, the mean is taken as 0. scale, bias, mean (per row) and inv_std may be null.
struct NormArgs {
  const void* x;
  const void* scale;
  const void* bias;
  void* y;
  void* mean;
  void* inv_std;
  int64_t rows, n;
  Divisor groups;
  int64_t group_channels;
  Divisor channel_elements;
  double epsilon;
  int32_t centred, reserved;
  int64_t channels;
};

// y = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c] over (batch, channels, inner).
struct BatchNormArgs {
  const void* x;
  const void* scale;
  const void* bias;
  const void* mean;
  const void* variance;
  void* y;
  int64_t n;
  Divisor channels, inner;
  double epsilon;
};

// y = x / (bias + alpha / size * sum of squares of `size` neighbours in the channels)^beta
struct LrnArgs {
  const void* x;
  void* y;
  int64_t n;
  Divisor channels, inner;
  int64_t size;
  double alpha, beta, bias;
};

}  // namespace mge::gpu
