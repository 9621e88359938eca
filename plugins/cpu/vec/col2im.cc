// SPDX-License-Identifier: Apache-2.0
#include "vec/col2im.h"

#include "vec/activation.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// The taps and the image of one output row.
struct Row {
  Col2ImTaps z, y;
  const float* columns;  // columns of the image
};

// Calls f(address of channel 0 of the input pixel, its weight or null) for each tap of a pixel and group.
template <bool Weighs, typename F>
MGE_INLINE void ForTaps(const Col2ImTask& t, const Row& row, const Col2ImTaps& x, int64_t group, F&& f) {
  const Col2ImAxis *az = &t.axes[0], *ay = &t.axes[1], *ax = &t.axes[2];
  int64_t taps = az->kernel * ay->kernel * ax->kernel;
  int64_t pixel = Weighs ? t.channels : t.groups * taps * t.channels, per_tap = Weighs ? 0 : t.channels;
  int64_t along_x = ax->step * per_tap - ax->back * pixel;
  for (int64_t a = 0; a < row.z.count; ++a) {
    int64_t kz = row.z.first_tap + a * az->step, iz = row.z.first - a * az->back;
    for (int64_t b = 0; b < row.y.count; ++b) {
      int64_t ky = row.y.first_tap + b * ay->step, iy = row.y.first - b * ay->back;
      int64_t tap = (kz * ay->kernel + ky) * ax->kernel + x.first_tap, at = (iz * ay->in + iy) * ax->in + x.first;
      const float* p = row.columns + at * pixel + group * taps * per_tap + tap * per_tap;
      const float* w = Weighs ? t.weights + tap * t.channels : nullptr;
      for (int64_t c = 0; c < x.count; ++c, p += along_x) {
        f(p, w);
        if (Weighs) w += ax->step * t.channels;
      }
    }
  }
}

// Computes one vector of channels; only its first n channels if Tail.
template <bool Weighs, bool Tail>
MGE_INLINE void Channels(const Col2ImTask& t, const Row& row, const Col2ImTaps& x, int64_t group, int64_t c, int n,
                         const float* add, float* y) {
  auto load = [n](const float* p) { return Tail ? LoadN(p, n) : Load(p); };
  VF sum = t.bias ? load(t.bias + group * t.channels + c) : VF{};
  if (add) sum += load(add + c);
  ForTaps<Weighs>(t, row, x, group, [&](const float* p, const float* w) {
    sum = Weighs ? Fma(load(p + c), load(w + c), sum) : sum + load(p + c);
  });
  if (t.activation == Activation::kClip) sum = Clip(sum, Splat(t.lo), Splat(t.hi));
  if (Tail)
    StoreN(y + c, sum, n);
  else
    Store(y + c, sum);
}

// Computes one or two channels, too few for vectors.
void FewChannels(const Col2ImTask& t, const Row& row, const Col2ImTaps& x, int64_t group, const float* add, float* y) {
  for (int64_t c = 0; c < t.channels; ++c) {
    float sum = t.bias ? t.bias[group * t.channels + c] : 0.0f;
    if (add) sum += add[c];
    ForTaps<false>(t, row, x, group, [&](const float* p, const float*) { sum += p[c]; });
    if (t.activation == Activation::kClip) {
      sum = sum < t.lo ? t.lo : sum;
      sum = sum > t.hi ? t.hi : sum;
    }
    y[c] = sum;
  }
}

template <bool Weighs>
MGE_INLINE void AllChannels(const Col2ImTask& t, const Row& row, const Col2ImTaps& x, int64_t group, const float* add,
                            float* y) {
  int64_t c = 0;
  for (; c + kF <= t.channels; c += kF) Channels<Weighs, false>(t, row, x, group, c, kF, add, y);
  if (c < t.channels) Channels<Weighs, true>(t, row, x, group, c, static_cast<int>(t.channels - c), add, y);
}

void Run(const Col2ImTask& t, int64_t r0, int64_t r1) {
  const Col2ImAxis *az = &t.axes[0], *ay = &t.axes[1], *ax = &t.axes[2];
  int64_t all = t.groups * t.channels;
  int64_t image = az->in * ay->in * ax->in * all * (t.weights ? 1 : az->kernel * ay->kernel * ax->kernel);
  for (int64_t r = r0; r < r1; ++r) {
    Row row = {az->taps[r / ay->out % az->out], ay->taps[r % ay->out], t.columns + r / (ay->out * az->out) * image};
    float* y = t.y + r * ax->out * all;
    const float* add = t.add ? t.add + r * ax->out * all : nullptr;
    for (int64_t ox = 0; ox < ax->out; ++ox) {
      const Col2ImTaps& x = ax->taps[ox];
      for (int64_t g = 0; g < t.groups; ++g) {
        int64_t at = ox * all + g * t.channels;
        const float* a = add ? add + at : nullptr;
        if (t.weights)
          AllChannels<true>(t, row, x, g, a, y + at);
        else if (t.channels <= 2)
          FewChannels(t, row, x, g, a, y + at);
        else
          AllChannels<false>(t, row, x, g, a, y + at);
      }
    }
    ActivateBlock(t.activation, y, 0, 1, ax->out * all, t.lo);  // the row lies together
  }
}

}  // namespace

extern const Col2ImTable kCol2Im = {Run};

}  // namespace mge::cpu::MGE_CPU_ISA
