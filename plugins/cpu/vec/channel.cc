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

}  // namespace

extern const ChannelTable kChannel = {{BatchNorm<float>, BatchNorm<double>, BatchNorm<F16>, BatchNorm<BF16>},
                                      {BatchNormLast<float>, BatchNormLast<double>, BatchNormLast<F16>, BatchNormLast<BF16>},
                                      {Lrn<float>, Lrn<double>, Lrn<F16>, Lrn<BF16>}};

}  // namespace mge::cpu::MGE_CPU_ISA
