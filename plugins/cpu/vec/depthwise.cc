// SPDX-License-Identifier: Apache-2.0
#include "vec/depthwise.h"

#include "vec/activation.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Neighbouring outputs whose sums stay in registers.
constexpr int kPixels = 4;

template <bool Tail>
MGE_INLINE VF LoadEdge(const float* p, int n) {
  return Tail ? LoadN(p, n) : Load(p);
}

// The row of outputs to compute: its image, and its position there.
struct Row {
  const float* image;
  int64_t oz, oy;
};

// Adds the products of one layer of the input and of the filter to the sums of `Pixels` neighbours of one vector of channels
// (n of them), from column `ox`. K and Stride: a filter of that width and height without dilation, with unrolled columns; 0:
// taken from the task. Edge: columns may be outside the image.
template <int K, int Stride, int Pixels, bool Edge, bool Tail>
MGE_INLINE void AddLayer(const DepthwiseTask& t, const float* image, const float* filter, int64_t oy, int64_t ox, int64_t c,
                         int n, VF (&sum)[Pixels]) {
  int64_t kw = K ? K : t.kw, kh = K ? K : t.kh, dw = K ? 1 : t.dw, sw = K ? Stride : t.sw;
  for (int64_t ky = 0; ky < kh; ++ky) {
    int64_t iy = oy * t.sh - t.ph + ky * t.dh;
    if (iy < 0 || iy >= t.h) continue;
    const float* row = image + iy * t.w * t.channels + c;
    const float* weights = filter + ky * kw * t.channels + c;
    int64_t x0 = ox * sw - t.pw;
    if constexpr (K != 0) {
      VF w[K];
      MGE_UNROLL
      for (int kx = 0; kx < K; ++kx) w[kx] = LoadEdge<Tail>(weights + kx * t.channels, n);
      constexpr int kSpan = (Pixels - 1) * Stride + K;
      MGE_UNROLL
      for (int i = 0; i < kSpan; ++i) {  // loads each input once for all sums that use it
        int64_t ix = x0 + i;
        if (Edge && (ix < 0 || ix >= t.w)) continue;
        VF v = LoadEdge<Tail>(row + ix * t.channels, n);
        MGE_UNROLL
        for (int p = 0; p < Pixels; ++p) {
          int kx = i - p * Stride;
          if (kx >= 0 && kx < K) sum[p] = Fma(v, w[kx], sum[p]);
        }
      }
    } else {
      for (int64_t kx = 0; kx < kw; ++kx) {
        VF w = LoadEdge<Tail>(weights + kx * t.channels, n);
        MGE_UNROLL
        for (int p = 0; p < Pixels; ++p) {
          int64_t ix = x0 + p * sw + kx * dw;
          if (Edge && (ix < 0 || ix >= t.w)) continue;
          sum[p] = Fma(LoadEdge<Tail>(row + ix * t.channels, n), w, sum[p]);
        }
      }
    }
  }
}

// Computes the outputs of those neighbours.
template <int K, int Stride, int Pixels, bool Edge, bool Tail>
MGE_INLINE void Pixel(const DepthwiseTask& t, const Row& row, int64_t ox, int64_t c, int n, const float* add, float* y) {
  VF sum[Pixels];
  VF start = t.bias ? LoadEdge<Tail>(t.bias + c, n) : VF{};
  MGE_UNROLL
  for (int p = 0; p < Pixels; ++p) {
    sum[p] = start;
    if (add) sum[p] += LoadEdge<Tail>(add + p * t.channels + c, n);
  }
  for (int64_t kz = 0; kz < t.kd; ++kz) {
    const int64_t iz = row.oz * t.sd - t.pd + kz * t.dd;
    if (iz < 0 || iz >= t.d) continue;
    AddLayer<K, Stride, Pixels, Edge, Tail>(t, row.image + iz * t.h * t.w * t.channels,
                                            t.weights + kz * t.kh * t.kw * t.channels, row.oy, ox, c, n, sum);
  }
  MGE_UNROLL
  for (int p = 0; p < Pixels; ++p) {
    VF v = sum[p];
    if (t.activation == Activation::kClip) v = Clip(v, Splat(t.lo), Splat(t.hi));
    if (Tail)
      StoreN(y + p * t.channels + c, v, n);
    else
      Store(y + p * t.channels + c, v);
  }
}

template <int K, int Stride, int Pixels, bool Edge>
__attribute__((noinline)) void Channels(const DepthwiseTask& t, const Row& row, int64_t ox, const float* add, float* y) {
  int64_t c = 0;
  for (; c + kF <= t.channels; c += kF) Pixel<K, Stride, Pixels, Edge, false>(t, row, ox, c, kF, add, y);
  if (c < t.channels) Pixel<K, Stride, Pixels, Edge, true>(t, row, ox, c, static_cast<int>(t.channels - c), add, y);
}

template <int K, int Stride>
void RowOf(const DepthwiseTask& t, int64_t number, int64_t begin, int64_t end) {
  const int64_t layer = number / t.oh, span = (t.kw - 1) * t.dw + 1;
  const Row row = {t.x + layer / t.od * t.d * t.h * t.w * t.channels, layer % t.od, number % t.oh};
  int64_t at = number * t.ow * t.channels;
  for (int64_t ox = begin; ox < end;) {
    int64_t left = end - ox, pixels = left >= kPixels ? kPixels : 1;
    int64_t x0 = ox * t.sw - t.pw, x1 = x0 + (pixels - 1) * t.sw + span;
    bool edge = x0 < 0 || x1 > t.w;
    const float* add = t.add ? t.add + at + ox * t.channels : nullptr;
    float* y = t.y + at + ox * t.channels;
    if (pixels == kPixels) {
      if (edge)
        Channels<K, Stride, kPixels, true>(t, row, ox, add, y);
      else
        Channels<K, Stride, kPixels, false>(t, row, ox, add, y);
    } else {
      if (edge)
        Channels<K, Stride, 1, true>(t, row, ox, add, y);
      else
        Channels<K, Stride, 1, false>(t, row, ox, add, y);
    }
    ox += pixels;
  }
  ActivateBlock(t.activation, t.y + at + begin * t.channels, t.channels, end - begin, t.channels, t.lo);
}

void Run(const DepthwiseTask& t, int64_t p0, int64_t p1) {
  bool square = t.kh == t.kw && t.dh == 1 && t.dw == 1;
  void (*row)(const DepthwiseTask&, int64_t, int64_t, int64_t) = RowOf<0, 0>;
  if (square && t.kw == 3 && t.sw == 1) row = RowOf<3, 1>;
  if (square && t.kw == 3 && t.sw == 2) row = RowOf<3, 2>;
  if (square && t.kw == 5 && t.sw == 1) row = RowOf<5, 1>;
  if (square && t.kw == 5 && t.sw == 2) row = RowOf<5, 2>;
  for (int64_t p = p0; p < p1; ++p) {
    int64_t part = p % t.parts;
    row(t, p / t.parts, t.ow * part / t.parts, t.ow * (part + 1) / t.parts);
  }
}

template <int kTimes>
void RepeatOf(const float* x, int64_t n, int64_t step, int64_t times, float* y) {
  const int64_t count = kTimes ? kTimes : times;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < count; ++k) y[i * count + k] = x[i * step];
  }
}

// Writes each element as one vector, or as the first elements of one that the next elements overwrite.
template <int kTimes>
void RepeatVectors(const float* x, int64_t n, int64_t step, float* y) {
  int64_t i = 0;
  if constexpr (kTimes <= kF) {
    for (; (n - i) * kTimes >= kF; ++i) Store(y + i * kTimes, Splat(x[i * step]));
  }
  RepeatOf<kTimes>(x + i * step, n - i, step, kTimes, y + i * kTimes);
}

void Repeat(const float* x, int64_t n, int64_t step, int64_t times, float* y) {
  switch (times) {
    case 1: return RepeatOf<1>(x, n, step, times, y);
    case 2: return RepeatOf<2>(x, n, step, times, y);
    case 4: return RepeatVectors<4>(x, n, step, y);
    case 8: return RepeatVectors<8>(x, n, step, y);
    default: return RepeatOf<0>(x, n, step, times, y);
  }
}

}  // namespace

extern const DepthwiseTable kDepthwise = {Run, Repeat};

}  // namespace mge::cpu::MGE_CPU_ISA
