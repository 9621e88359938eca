// SPDX-License-Identifier: Apache-2.0
#include "vec/blend.h"

#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <int Count, typename Step>
MGE_INLINE void ForChannels(const Pixels& p, int64_t channels, float* out, Step step) {
  VF w[Count];
  for (int k = 0; k < Count; ++k) w[k] = Splat(p.weight[k]);
  int64_t c = 0;
  for (; c + kF <= channels; c += kF) {
    VF v = Load(out + c);
    for (int k = 0; k < Count; ++k) v = step(v, Load(p.pixel[k] + c), w[k]);
    Store(out + c, v);
  }
  if (c == channels) return;
  int n = static_cast<int>(channels - c);
  VF v = LoadN(out + c, n);
  for (int k = 0; k < Count; ++k) v = step(v, LoadN(p.pixel[k] + c, n), w[k]);
  StoreN(out + c, v, n);
}

template <typename Step>
MGE_INLINE void ForCount(const Pixels& p, int64_t channels, float* out, Step step) {
  switch (p.count) {
    case 1: return ForChannels<1>(p, channels, out, step);
    case 2: return ForChannels<2>(p, channels, out, step);
    case 3: return ForChannels<3>(p, channels, out, step);
    case 4: return ForChannels<4>(p, channels, out, step);
    default: break;
  }
}

void Add(const Pixels& p, int64_t channels, float* sums) {
  ForCount(
      p, channels, sums, [](VF sum, VF v, VF w) __attribute__((always_inline)) { return Fma(v, w, sum); });
}

void Raise(const Pixels& p, int64_t channels, float* largest) {
  ForCount(
      p, channels, largest, [](VF most, VF v, VF w) __attribute__((always_inline)) {
        VF x = v * w;
        return x > most ? x : most;
      });
}

}  // namespace

extern const BlendTable kBlend = {Add, Raise};

}  // namespace mge::cpu::MGE_CPU_ISA
