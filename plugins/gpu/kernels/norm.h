// SPDX-License-Identifier: Apache-2.0
// Arguments of softmax and of normalisations.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// y = softmax (or its logarithm) of x (outer, n, inner) along n; rows = outer * inner.
struct SoftmaxArgs {
  const void* x;
  void* y;
  int64_t rows, n, inner;
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
  int64_t rows, n, groups, group_channels, channel_elements;
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
  int64_t n, channels, inner;
  double epsilon;
};

// y = x / (bias + alpha / size * sum of squares of `size` neighbours in the channels)^beta
struct LrnArgs {
  const void* x;
  void* y;
  int64_t n, channels, inner, size;
  double alpha, beta, bias;
};

}  // namespace mge::gpu
