// SPDX-License-Identifier: Apache-2.0
// Operators per channel: batch normalisation for inference, local response normalisation.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias. All parameters have x's type and one element per channel.
struct BatchNormSpec {
  const void *x, *scale, *bias, *mean, *variance;
  void* y;
  int64_t channels, n;  // n: elements per plane
  double epsilon;
};

// y = x / (bias + alpha / size * sum of squares over `size` channels) ^ beta
struct LrnSpec {
  const void* x;
  void* y;
  int64_t channels, n, size;
  double alpha, beta, bias;
};

// Batch normalisation in training, of pixels with channels last. Both functions have a form with a second operand u, which may
// be null.
struct ChannelRows {
  const float *x, *u;
  int64_t channels;
};

inline constexpr int64_t kChannelRows = 64;  // rows per unit if channels are last

struct ChannelTable {
  // Units are planes (image, channel).
  void (*batch_norm[4])(const BatchNormSpec& s, int64_t begin, int64_t end);  // by FloatIndex (vec/rows.h)
  // Units are blocks of kChannelRows pixels. `pixels` is the total number of pixels.
  void (*batch_norm_last[4])(const BatchNormSpec& s, int64_t pixels, int64_t begin, int64_t end);
  // Sums over pixels [begin, end) for each channel: sums[c] of x - shift, or of u; then sums[channels + c] of (x - shift)^2, or
  // of u (x - shift).
  void (*sums)(const ChannelRows& s, const float* shift, int64_t begin, int64_t end, double* sums);
  // y = (x - shift) a + b, or with u, (x - shift) a + b + u factor, for pixels [begin, end). y may be x or u.
  void (*scale)(const ChannelRows& s, const float* shift, const float* a, const float* b, const float* factor, float* y,
                int64_t begin, int64_t end);
  // Units are images.
  void (*lrn[4])(const LrnSpec& s, int64_t begin, int64_t end);
};

MGE_CPU_DISPATCH(ChannelTable, Channel)

}  // namespace mge::cpu
