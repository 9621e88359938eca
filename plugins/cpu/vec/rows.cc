// SPDX-License-Identifier: Apache-2.0
#include "vec/rows.h"

#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename T>
using V = Vec<Compute<T>>;
template <typename T>
inline constexpr int kL = kLanes<Compute<T>>;

template <typename C>
MGE_INLINE Vec<C> SplatC(C x) {
  return Splat(x);
}

// Returns a mask of the first n lanes.
template <typename C>
MGE_INLINE typename VectorOf<C>::mask FirstLanes(int64_t n) {
  typename VectorOf<C>::mask lane;
  for (int i = 0; i < kLanes<C>; ++i) lane[i] = i;
  return lane < static_cast<decltype(lane[0] + 0)>(n);
}

template <typename T>
void SoftmaxLine(const T* x, T* y, int64_t n, bool log) {
  using C = Compute<T>;
  constexpr int L = kL<T>;
  const C kLowest = static_cast<C>(-__builtin_inf());
  auto tail = FirstLanes<C>(n % L);
  int64_t whole = n - n % L;
  auto top = SplatC<C>(kLowest);
  for (int64_t i = 0; i < whole; i += L) top = Max(Load(x + i), top);
  if (whole < n) top = Max(tail ? LoadN(x + whole, static_cast<int>(n - whole)) : SplatC<C>(kLowest), top);
  C highest = MaxOf(top);
  auto shift = SplatC<C>(highest);
  V<T> sum = {};
  if (log) {
    for (int64_t i = 0; i < whole; i += L) sum += Exp(Load(x + i) - shift);
    if (whole < n) sum += tail ? Exp(LoadN(x + whole, static_cast<int>(n - whole)) - shift) : V<T>{};
    V<T> total = Log(SplatC<C>(Sum(sum)));
    C offset = total[0];
    for (int64_t i = 0; i < whole; i += L) Store(y + i, Load(x + i) - shift - offset);
    if (whole < n) {
      int rest = static_cast<int>(n - whole);
      StoreN(y + whole, LoadN(x + whole, rest) - shift - offset, rest);
    }
    return;
  }
  constexpr bool kKeeps = sizeof(T) == sizeof(C);  // y can store e^(x - max) without rounding
  for (int64_t i = 0; i < whole; i += L) {
    V<T> e = Exp(Load(x + i) - shift);
    if constexpr (kKeeps) Store(y + i, e);
    sum += e;
  }
  if (whole < n) {
    int rest = static_cast<int>(n - whole);
    V<T> e = Exp(LoadN(x + whole, rest) - shift);
    if constexpr (kKeeps) StoreN(y + whole, e, rest);
    sum += tail ? e : V<T>{};
  }
  C factor = 1 / Sum(sum);
  for (int64_t i = 0; i < whole; i += L) {
    V<T> e = kKeeps ? Load(y + i) : Exp(Load(x + i) - shift);
    Store(y + i, e * factor);
  }
  if (whole < n) {
    int rest = static_cast<int>(n - whole);
    V<T> e = kKeeps ? LoadN(y + whole, rest) : Exp(LoadN(x + whole, rest) - shift);
    StoreN(y + whole, e * factor, rest);
  }
}

// Computes `columns` neighbouring softmaxes along an axis of stride `inner`; at most one vector of them.
template <typename T>
void SoftmaxColumns(const T* x, T* y, int64_t n, int64_t inner, int columns, bool log) {
  using C = Compute<T>;
  auto top = SplatC<C>(static_cast<C>(-__builtin_inf()));
  auto load = [&](int64_t i) { return columns == kL<T> ? Load(x + i * inner) : LoadN(x + i * inner, columns); };
  auto store = [&](int64_t i, V<T> v) { columns == kL<T> ? Store(y + i * inner, v) : StoreN(y + i * inner, v, columns); };
  for (int64_t i = 0; i < n; ++i) top = Max(load(i), top);
  V<T> sum = {};
  for (int64_t i = 0; i < n; ++i) sum += Exp(load(i) - top);
  if (log) {
    V<T> offset = Log(sum);
    for (int64_t i = 0; i < n; ++i) store(i, load(i) - top - offset);
  } else {
    V<T> factor = 1 / sum;
    for (int64_t i = 0; i < n; ++i) store(i, Exp(load(i) - top) * factor);
  }
}

template <typename T>
void Softmax(const SoftmaxRows& s, int64_t begin, int64_t end) {
  auto* x = static_cast<const T*>(s.x);
  auto* y = static_cast<T*>(s.y);
  if (s.inner == 1) {
    for (int64_t r = begin; r < end; ++r) SoftmaxLine(x + r * s.n, y + r * s.n, s.n, s.log);
    return;
  }
  // Units are vectors of columns.
  int64_t per_block = (s.inner + kL<T> - 1) / kL<T>;
  for (int64_t u = begin; u < end; ++u) {
    int64_t block = u / per_block, column = u % per_block * kL<T>;
    int64_t offset = block * s.n * s.inner + column;
    int64_t left = s.inner - column;
    SoftmaxColumns(x + offset, y + offset, s.n, s.inner, static_cast<int>(left < kL<T> ? left : kL<T>), s.log);
  }
}

// Mean and 1 / sqrt(variance + epsilon), computed in two passes to avoid cancellation.
template <typename T>
struct Moments {
  Compute<T> mean, inv_std;
};

template <typename T, typename F>
MGE_INLINE void SumLine(const T* x, int64_t n, V<T>& sum, F f) {
  constexpr int L = kL<T>;
  V<T> a = {}, b = {}, c = {}, d = {};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a += f(Load(x + i));
    b += f(Load(x + i + L));
    c += f(Load(x + i + 2 * L));
    d += f(Load(x + i + 3 * L));
  }
  for (; i + L <= n; i += L) a += f(Load(x + i));
  if (i < n) b += FirstLanes<Compute<T>>(n - i) ? f(LoadN(x + i, static_cast<int>(n - i))) : V<T>{};
  sum += (a + b) + (c + d);
}

template <typename C>
MGE_INLINE C InverseRoot(C x) {
  Vec<C> r = 1 / Sqrt(SplatC<C>(x));
  return r[0];
}

template <typename T>
MGE_INLINE Moments<T> MomentsOf(const T* x, int64_t n, double epsilon, bool centred) {
  using C = Compute<T>;
  C mean = 0;
  if (centred) {
    V<T> sum = {};
    SumLine(x, n, sum, [](V<T> v) { return v; });
    mean = Sum(sum) / static_cast<C>(n);
  }
  V<T> squares = {};
  auto m = SplatC<C>(mean);
  SumLine(x, n, squares, [m](V<T> v) { return (v - m) * (v - m); });
  return {mean, InverseRoot<C>(Sum(squares) / static_cast<C>(n) + static_cast<C>(epsilon))};
}

template <typename T>
void Norm(const NormRows& s, int64_t begin, int64_t end) {
  using C = Compute<T>;
  constexpr int L = kL<T>;
  auto* scale = static_cast<const T*>(s.scale);
  auto* bias = static_cast<const T*>(s.bias);
  for (int64_t r = begin; r < end; ++r) {
    auto* x = static_cast<const T*>(s.x) + r * s.n;
    auto* y = static_cast<T*>(s.y) + r * s.n;
    Moments<T> m = MomentsOf(x, s.n, s.epsilon, s.centred);
    if (s.mean) static_cast<C*>(s.mean)[r] = m.mean;
    if (s.inv_std) static_cast<C*>(s.inv_std)[r] = m.inv_std;
    auto line = [&](auto load, auto store) {
      for (int64_t i = 0; i < s.n; i += L) {
        int left = static_cast<int>(s.n - i < L ? s.n - i : L);
        V<T> v = (load(x + i, left) - m.mean) * m.inv_std;
        if (scale) v = v * load(scale + i, left);
        if (bias) v = v + load(bias + i, left);
        store(y + i, v, left);
      }
    };
    line([](const T* p, int n) { return n == L ? Load(p) : LoadN(p, n); },
         [](T* p, V<T> v, int n) { n == L ? Store(p, v) : StoreN(p, v, n); });
  }
}

template <typename T>
void Group(const NormGroup& g) {
  using C = Compute<T>;
  constexpr int L = kL<T>;
  auto* x = static_cast<const T*>(g.x);
  auto* y = static_cast<T*>(g.y);
  int64_t count = g.channels * g.n;
  int64_t rows = g.row_stride ? g.n : 1, columns = g.row_stride ? g.channels : count, stride = g.row_stride;
  V<T> sum = {};
  for (int64_t r = 0; r < rows; ++r) SumLine(x + r * stride, columns, sum, [](V<T> v) { return v; });
  C mean = Sum(sum) / static_cast<C>(count);
  auto m = SplatC<C>(mean);
  V<T> squares = {};
  for (int64_t r = 0; r < rows; ++r) SumLine(x + r * stride, columns, squares, [m](V<T> v) { return (v - m) * (v - m); });
  C inv_std = InverseRoot<C>(Sum(squares) / static_cast<C>(count) + static_cast<C>(g.epsilon));
  auto* scale = static_cast<const T*>(g.scale);
  auto* bias = static_cast<const T*>(g.bias);
  if (stride) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < columns; i += L) {
        int left = static_cast<int>(columns - i < L ? columns - i : L);
        V<T> v = (LoadN(x + r * stride + i, left) - mean) * inv_std;
        StoreN(y + r * stride + i, v * LoadN(scale + i, left) + LoadN(bias + i, left), left);
      }
    }
    return;
  }
  for (int64_t c = 0; c < g.channels; ++c) {
    C a = static_cast<C>(LoadN(scale + c, 1)[0]) * inv_std, b = static_cast<C>(LoadN(bias + c, 1)[0]);
    for (int64_t i = 0; i < g.n; i += L) {
      int left = static_cast<int>(g.n - i < L ? g.n - i : L);
      int64_t at = c * g.n + i;
      V<T> v = left == L ? Load(x + at) : LoadN(x + at, left);
      v = (v - mean) * a + b;
      if (left == L) {
        Store(y + at, v);
      } else {
        StoreN(y + at, v, left);
      }
    }
  }
}

}  // namespace

extern const RowsTable kRows = {{Softmax<float>, Softmax<double>, Softmax<F16>, Softmax<BF16>},
                                {Norm<float>, Norm<double>, Norm<F16>, Norm<BF16>},
                                {Group<float>, Group<double>, Group<F16>, Group<BF16>}};

}  // namespace mge::cpu::MGE_CPU_ISA
