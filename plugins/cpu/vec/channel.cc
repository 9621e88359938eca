// SPDX-License-Identifier: Apache-2.0
#include "vec/channel.h"

#include "vec/lanes.h"
#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename T>
struct Parameters {
  using L = LaneOf<T>;
  typename L::V mean, factor, bias;
  MGE_CPU_INLINE Parameters(const BatchNormSpec& s, int64_t c, int n) {
    mean = L::Get(static_cast<const T*>(s.mean) + c, n);
    factor = L::Get(static_cast<const T*>(s.scale) + c, n) /
             Sqrt(L::Get(static_cast<const T*>(s.variance) + c, n) + static_cast<typename L::C>(s.epsilon));
    bias = L::Get(static_cast<const T*>(s.bias) + c, n);
  }
  MGE_CPU_INLINE typename L::V Apply(typename L::V x) const { return Fma(x - mean, factor, bias); }
};

template <typename T>
void BatchNorm(const BatchNormSpec& s, int64_t begin, int64_t end) {
  using L = LaneOf<T>;
  for (int64_t u = begin; u < end; ++u) {
    Parameters<T> one(s, u % s.channels, 1), p = one;
    p.mean = L::All(one.mean[0]);
    p.factor = L::All(one.factor[0]);
    p.bias = L::All(one.bias[0]);
    auto* x = static_cast<const T*>(s.x) + u * s.n;
    auto* y = static_cast<T*>(s.y) + u * s.n;
    for (int64_t i = 0; i < s.n; i += L::kWidth) {
      int left = static_cast<int>(s.n - i < L::kWidth ? s.n - i : L::kWidth);
      L::Put(y + i, p.Apply(L::Get(x + i, left)), left);
    }
  }
}

template <typename T>
void BatchNormLast(const BatchNormSpec& s, int64_t pixels, int64_t begin, int64_t end) {
  using L = LaneOf<T>;
  for (int64_t u = begin; u < end; ++u) {
    int64_t first = u * kChannelRows, last = first + kChannelRows < pixels ? first + kChannelRows : pixels;
    for (int64_t c = 0; c < s.channels; c += L::kWidth) {
      int left = static_cast<int>(s.channels - c < L::kWidth ? s.channels - c : L::kWidth);
      Parameters<T> p(s, c, left);
      for (int64_t r = first; r < last; ++r) {
        int64_t at = r * s.channels + c;
        L::Put(static_cast<T*>(s.y) + at, p.Apply(L::Get(static_cast<const T*>(s.x) + at, left)), left);
      }
    }
  }
}

template <typename T>
void Lrn(const LrnSpec& s, int64_t begin, int64_t end) {
  using L = LaneOf<T>;
  using C = typename L::C;
  int64_t before = (s.size - 1) / 2, after = s.size - 1 - before;
  C alpha = static_cast<C>(s.alpha / static_cast<double>(s.size)), bias = static_cast<C>(s.bias);
  for (int64_t u = begin; u < end; ++u) {
    auto* x = static_cast<const T*>(s.x) + u * s.channels * s.n;
    auto* y = static_cast<T*>(s.y) + u * s.channels * s.n;
    for (int64_t i = 0; i < s.n; i += L::kWidth) {
      int left = static_cast<int>(s.n - i < L::kWidth ? s.n - i : L::kWidth);
      for (int64_t c = 0; c < s.channels; ++c) {
        int64_t first = c > before ? c - before : 0, last = after < s.channels - 1 - c ? c + after : s.channels - 1;
        typename L::V sum = L::All(0);
        for (int64_t k = first; k <= last; ++k) {
          auto v = L::Get(x + k * s.n + i, left);
          sum += v * v;
        }
        auto power = Exp(Log(bias + alpha * sum) * static_cast<C>(-s.beta));
        L::Put(y + c * s.n + i, L::Get(x + c * s.n + i, left) * power, left);
      }
    }
  }
}

// ---------------------------------------------------------------- batch normalisation in training

// Adds the sums of kVectors vectors of channels over `rows` pixels, at most kChannelRows, so that float32 is exact enough.
template <bool kWithU, int kVectors>
MGE_INLINE void AddSums(const ChannelRows& s, const float* shift, int64_t at, int64_t rows, int64_t c, int lanes,
                        double* sums) {
  VF first[kVectors] = {}, second[kVectors] = {}, base[kVectors];
  for (int v = 0; v < kVectors; ++v) base[v] = LaneOf<float>::Get(shift + c + v * kF, lanes);
  const float* x = s.x + at * s.channels + c;
  const float* u = kWithU ? s.u + at * s.channels + c : nullptr;
  for (int64_t r = 0; r < rows; ++r, x += s.channels) {
    for (int v = 0; v < kVectors; ++v) {
      const VF d = LaneOf<float>::Get(x + v * kF, lanes) - base[v];
      VF w = d;
      if constexpr (kWithU) w = LaneOf<float>::Get(u + v * kF, lanes);
      first[v] += w;
      second[v] = Fma(w, d, second[v]);
    }
    if constexpr (kWithU) u += s.channels;
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int l = 0; l < lanes; ++l) {
      sums[c + v * kF + l] += static_cast<double>(first[v][l]);
      sums[s.channels + c + v * kF + l] += static_cast<double>(second[v][l]);
    }
  }
}

template <bool kWithU>
void SumRows(const ChannelRows& s, const float* shift, int64_t begin, int64_t end, double* sums) {
  for (int64_t i = 0; i < 2 * s.channels; ++i) sums[i] = 0;
  for (int64_t at = begin; at < end; at += kChannelRows) {
    const int64_t rows = end - at < kChannelRows ? end - at : kChannelRows;
    int64_t c = 0;
    for (; c + 4 * kF <= s.channels; c += 4 * kF) AddSums<kWithU, 4>(s, shift, at, rows, c, kF, sums);
    for (; c + kF <= s.channels; c += kF) AddSums<kWithU, 1>(s, shift, at, rows, c, kF, sums);
    if (c < s.channels) AddSums<kWithU, 1>(s, shift, at, rows, c, static_cast<int>(s.channels - c), sums);
  }
}
void Sums(const ChannelRows& s, const float* shift, int64_t begin, int64_t end, double* sums) {
  s.u ? SumRows<true>(s, shift, begin, end, sums) : SumRows<false>(s, shift, begin, end, sums);
}

template <bool kWithU, int kVectors>
MGE_INLINE void ScaleChannels(const ChannelRows& s, const float* shift, const float* a, const float* b, const float* factor,
                              float* y, int64_t at, int64_t rows, int64_t c, int lanes) {
  using L = LaneOf<float>;
  VF base[kVectors], scale[kVectors], add[kVectors], of_u[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    base[v] = L::Get(shift + c + v * kF, lanes);
    scale[v] = L::Get(a + c + v * kF, lanes);
    add[v] = L::Get(b + c + v * kF, lanes);
    if constexpr (kWithU) of_u[v] = L::Get(factor + c + v * kF, lanes);
  }
  for (int64_t i = at * s.channels + c, end = i + rows * s.channels; i < end; i += s.channels) {
    for (int v = 0; v < kVectors; ++v) {
      VF result = Fma(L::Get(s.x + i + v * kF, lanes) - base[v], scale[v], add[v]);
      if constexpr (kWithU) result = Fma(L::Get(s.u + i + v * kF, lanes), of_u[v], result);
      L::Put(y + i + v * kF, result, lanes);
    }
  }
}

template <bool kWithU>
void ScaleRows(const ChannelRows& s, const float* shift, const float* a, const float* b, const float* factor, float* y,
               int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kChannelRows) {
    const int64_t rows = end - at < kChannelRows ? end - at : kChannelRows;
    int64_t c = 0;
    for (; c + 4 * kF <= s.channels; c += 4 * kF) {
      ScaleChannels<kWithU, 4>(s, shift, a, b, factor, y, at, rows, c, kF);
    }
    for (; c + kF <= s.channels; c += kF) ScaleChannels<kWithU, 1>(s, shift, a, b, factor, y, at, rows, c, kF);
    if (c < s.channels) {
      ScaleChannels<kWithU, 1>(s, shift, a, b, factor, y, at, rows, c, static_cast<int>(s.channels - c));
    }
  }
}
void Scale(const ChannelRows& s, const float* shift, const float* a, const float* b, const float* factor, float* y,
           int64_t begin, int64_t end) {
  s.u ? ScaleRows<true>(s, shift, a, b, factor, y, begin, end) : ScaleRows<false>(s, shift, a, b, factor, y, begin, end);
}

}  // namespace

extern const ChannelTable kChannel = {{BatchNorm<float>, BatchNorm<double>, BatchNorm<F16>, BatchNorm<BF16>},
                                      {BatchNormLast<float>, BatchNormLast<double>, BatchNormLast<F16>, BatchNormLast<BF16>},
                                      Sums,
                                      Scale,
                                      {Lrn<float>, Lrn<double>, Lrn<F16>, Lrn<BF16>}};

}  // namespace mge::cpu::MGE_CPU_ISA
