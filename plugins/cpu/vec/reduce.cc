// SPDX-License-Identifier: Apache-2.0
#include "vec/reduce.h"

#include <type_traits>

#include "vec/lanes.h"
#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Like LaneOf, but integers are summed in 64 bits: a mean of narrow numbers must not overflow, and GCC 12 at -O3 miscompiles
// several narrow sums in one loop.
template <typename T, bool Float = kFloat<T>>
struct ReduceLane : LaneOf<T> {};
template <typename T>
struct ReduceLane<T, false> {
  using C = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  using V = C;
  static constexpr int kWidth = 1;
  MGE_INLINE V Get(const T* p, int) { return static_cast<V>(*p); }
  MGE_INLINE void Put(T* p, V v, int) { *p = static_cast<T>(v); }
  MGE_INLINE V All(C x) { return x; }
};

// The start value, the contribution of an element, and the combination of two values. Only LogSumExp uses `shift`.
template <ReduceOp Op, typename C>
MGE_INLINE C Start() {
  if constexpr (Op == ReduceOp::kProd) return 1;
  if constexpr (Op == ReduceOp::kMax || Op == ReduceOp::kMin) {
    constexpr bool kMax = Op == ReduceOp::kMax;
    if constexpr (std::is_floating_point_v<C>) {
      return static_cast<C>(kMax ? -__builtin_inf() : __builtin_inf());
    } else {
      constexpr bool kSignedC = static_cast<C>(-1) < 0;
      constexpr C kHighest = static_cast<C>(kSignedC ? (1ull << (sizeof(C) * 8 - 1)) - 1 : ~0ull);
      constexpr C kLowest = kSignedC ? static_cast<C>(1ull << (sizeof(C) * 8 - 1)) : C{0};
      return kMax ? kLowest : kHighest;
    }
  }
  return 0;
}
template <ReduceOp Op, typename V>
MGE_INLINE V Map(V x, V shift) {
  (void)shift;
  if constexpr (Op == ReduceOp::kL1) return Magnitude(x);
  if constexpr (Op == ReduceOp::kL2 || Op == ReduceOp::kSumSquare) return static_cast<V>(x * x);
  if constexpr (Op == ReduceOp::kLogSumExp) return Exp(x - shift);
  return x;
}
template <ReduceOp Op, typename V>
MGE_INLINE V Join(V a, V b) {
  if constexpr (Op == ReduceOp::kMax) return Larger(a, b);
  if constexpr (Op == ReduceOp::kMin) return Smaller(a, b);
  if constexpr (Op == ReduceOp::kProd) return static_cast<V>(a * b);
  return static_cast<V>(a + b);
}
template <ReduceOp Op, typename V, typename C>
MGE_INLINE V Finish(V a, V shift, int64_t count, C) {
  (void)shift, (void)count;
  if constexpr (Op == ReduceOp::kMean) return static_cast<V>(a / static_cast<C>(count));
  if constexpr (Op == ReduceOp::kL2) return Sqrt(a);
  if constexpr (Op == ReduceOp::kLogSum) return Log(a);
  if constexpr (Op == ReduceOp::kLogSumExp) return Log(a) + shift;
  return a;
}

// Calls f(offset) for every position of the outer reduced dimensions.
template <typename F>
MGE_INLINE void ForReduced(const ReduceSpec& s, F f) {
  int64_t index[kMaxReduceDims] = {};
  int64_t offset = 0;
  for (;;) {
    f(offset);
    int d = s.reduced - 1;
    for (; d >= 0; --d) {
      offset += s.reduced_strides[d];
      if (++index[d] < s.reduced_dims[d]) break;
      offset -= s.reduced_dims[d] * s.reduced_strides[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

MGE_INLINE int64_t KeptOffset(const ReduceSpec& s, int64_t index) {
  int64_t offset = 0;
  for (int d = s.kept - 1; d >= 0; --d) {
    offset += index % s.kept_dims[d] * s.kept_strides[d];
    index /= s.kept_dims[d];
  }
  return offset;
}

template <ReduceOp Op, typename L>
MGE_INLINE typename L::C FoldLanes(typename L::V v) {
  using C = typename L::C;
  if constexpr (L::kWidth == 1) {
    return v;
  } else {
    return Fold<C>(v, [](C a, C b) { return Join<Op, C>(a, b); });
  }
}

// Computes one element of y with four vector accumulators over contiguous lines.
template <ReduceOp Op, typename T>
MGE_INLINE typename ReduceLane<T>::C ReduceLines(const ReduceSpec& s, const T* x, typename ReduceLane<T>::C shift) {
  using L = ReduceLane<T>;
  using V = typename L::V;
  constexpr int W = L::kWidth;
  V start = L::All(Start<Op, typename L::C>()), sh = L::All(shift);
  V a = start, b = start, c = start, d = start;
  typename L::C rest = Start<Op, typename L::C>();
  ForReduced(s, [&](int64_t offset) {
    const T* p = x + offset;
    int64_t i = 0;
    for (; i + 4 * W <= s.inner; i += 4 * W) {
      a = Join<Op, V>(a, Map<Op, V>(L::Get(p + i, W), sh));
      b = Join<Op, V>(b, Map<Op, V>(L::Get(p + i + W, W), sh));
      c = Join<Op, V>(c, Map<Op, V>(L::Get(p + i + 2 * W, W), sh));
      d = Join<Op, V>(d, Map<Op, V>(L::Get(p + i + 3 * W, W), sh));
    }
    for (; i + W <= s.inner; i += W) a = Join<Op, V>(a, Map<Op, V>(L::Get(p + i, W), sh));
    if constexpr (W > 1) {
      if (i < s.inner) {
        int left = static_cast<int>(s.inner - i);
        V tail = Map<Op, V>(L::Get(p + i, left), sh);
        for (int k = 0; k < left; ++k) rest = Join<Op, typename L::C>(rest, tail[k]);
      }
    }
  });
  return Join<Op, typename L::C>(FoldLanes<Op, L>(Join<Op, V>(Join<Op, V>(a, b), Join<Op, V>(c, d))), rest);
}

// Computes up to kReduceColumns neighbours of y.
template <ReduceOp Op, typename T>
MGE_INLINE void ReduceColumns(const ReduceSpec& s, const T* x, T* y, int64_t columns) {
  using L = ReduceLane<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int W = L::kWidth, kVectors = static_cast<int>(kReduceColumns) / W;
  V sum[kVectors], shift[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = shift[v] = L::All(Start<Op, C>());
  auto each = [&](auto f) {
    for (int64_t v = 0; v * W < columns; ++v) {
      int64_t left = columns - v * W;
      f(v, static_cast<int>(left < W ? left : W));
    }
  };
  if constexpr (Op == ReduceOp::kLogSumExp) {
    for (int v = 0; v < kVectors; ++v) shift[v] = L::All(Start<ReduceOp::kMax, C>());
    ForReduced(s, [&](int64_t offset) {
      each([&](int64_t v, int n) { shift[v] = Join<ReduceOp::kMax, V>(shift[v], L::Get(x + offset + v * W, n)); });
    });
    for (int v = 0; v < kVectors; ++v) shift[v] = Abs(shift[v]) == static_cast<C>(__builtin_inf()) ? L::All(0) : shift[v];
  }
  ForReduced(s, [&](int64_t offset) {
    each([&](int64_t v, int n) { sum[v] = Join<Op, V>(sum[v], Map<Op, V>(L::Get(x + offset + v * W, n), shift[v])); });
  });
  each([&](int64_t v, int n) { L::Put(y + v * W, Finish<Op, V, C>(sum[v], shift[v], s.count, C{}), n); });
}

template <ReduceOp Op, typename T>
void Run(const ReduceSpec& s, const void* source, void* target, int64_t begin, int64_t end) {
  using L = ReduceLane<T>;
  using C = typename L::C;
  auto* x = static_cast<const T*>(source);
  auto* y = static_cast<T*>(target);
  if (!s.inner_reduced) {
    int64_t per_row = (s.inner + kReduceColumns - 1) / kReduceColumns;
    for (int64_t u = begin; u < end; ++u) {
      int64_t row = u / per_row, column = u % per_row * kReduceColumns;
      int64_t left = s.inner - column;
      ReduceColumns<Op>(s, x + KeptOffset(s, row) + column, y + row * s.inner + column,
                        left < kReduceColumns ? left : kReduceColumns);
    }
    return;
  }
  for (int64_t u = begin; u < end; ++u) {
    const T* from = x + KeptOffset(s, u);
    C shift = 0;
    if constexpr (Op == ReduceOp::kLogSumExp) {
      shift = ReduceLines<ReduceOp::kMax>(s, from, C{0});
      if (shift - shift != 0) shift = shift != shift ? shift : C{0};  // infinite: use e^x without shift
    }
    C r = ReduceLines<Op>(s, from, shift);
    typename L::V result = Finish<Op, typename L::V, C>(L::All(r), L::All(shift), s.count, C{});
    L::Put(y + u, result, 1);
  }
}

template <typename T>
ReduceFn FindFor(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return Run<ReduceOp::kSum, T>;
    case ReduceOp::kMax: return Run<ReduceOp::kMax, T>;
    case ReduceOp::kMin: return Run<ReduceOp::kMin, T>;
    case ReduceOp::kProd: return Run<ReduceOp::kProd, T>;
    case ReduceOp::kL1: return Run<ReduceOp::kL1, T>;
    case ReduceOp::kSumSquare: return Run<ReduceOp::kSumSquare, T>;
    default: break;
  }
  if constexpr (kFloat<T>) {
    switch (op) {
      case ReduceOp::kMean: return Run<ReduceOp::kMean, T>;
      case ReduceOp::kL2: return Run<ReduceOp::kL2, T>;
      case ReduceOp::kLogSum: return Run<ReduceOp::kLogSum, T>;
      case ReduceOp::kLogSumExp: return Run<ReduceOp::kLogSumExp, T>;
      default: break;
    }
  }
  return nullptr;
}

ReduceFn Find(ReduceOp op, mge_dtype type) {
  ReduceFn f = nullptr;
  DispatchFloating(type, [&](auto tag) { f = FindFor<typename decltype(tag)::type>(op); });
  if constexpr (kWithIntegers) {
    DispatchInteger(type, [&](auto tag) { f = FindFor<typename decltype(tag)::type>(op); });
    if (type == MGE_DTYPE_BOOL && (op == ReduceOp::kMax || op == ReduceOp::kMin)) f = FindFor<uint8_t>(op);
  }
  return f;
}

// ---------------------------------------------------------------- ArgMax and ArgMin

// Turns an element into a key, whose largest is searched. It reverses the order of floats by their sign, that of integers by
// their bits.
template <typename T, bool Float = kFloat<T>>
struct ArgKey {
  using C = Compute<T>;
  explicit ArgKey(bool minimum) : sign(static_cast<C>(minimum ? -1 : 1)) {}
  MGE_INLINE_MEMBER C operator()(T x) const { return Widen(x) * sign; }
  C sign;
};
template <typename T>
struct ArgKey<T, false> {
  using C = T;
  explicit ArgKey(bool minimum) : flip(static_cast<T>(minimum ? ~T{0} : T{0})) {}
  MGE_INLINE_MEMBER C operator()(T x) const { return static_cast<T>(x ^ flip); }
  T flip;
};

// Returns the largest key of a line.
template <typename T>
MGE_INLINE typename ArgKey<T>::C TopKey(const T* x, int64_t n, ArgKey<T> key) {
  auto top = key(x[0]);
  int64_t i = 0;
  if constexpr (kFloat<T>) {
    using L = LaneOf<T>;
    using V = typename L::V;
    constexpr int W = L::kWidth;
    if (n >= 2 * W) {
      V a = L::All(top), b = a;
      for (; i + 2 * W <= n; i += 2 * W) {
        a = Max(Load(x + i) * key.sign, a);
        b = Max(Load(x + i + W) * key.sign, b);
      }
      top = MaxOf(Max(a, b));
    }
  }
  for (; i < n; ++i) top = MaxNumber(top, key(x[i]));
  return top;
}

// Returns whether a key is `top`, which may be NaN.
template <typename C>
MGE_INLINE bool IsTop(C key, C top) {
  return key == top || (top != top && key != key);
}

// Returns whether one of the kArgBlock elements at x has the key `top`.
inline constexpr int64_t kArgBlock = 64;
template <typename T>
MGE_INLINE bool HasTop(const T* x, typename ArgKey<T>::C top, ArgKey<T> key) {
  if constexpr (kFloat<T>) {
    using L = LaneOf<T>;
    decltype(Load(x) != Load(x)) found = {};
    for (int64_t i = 0; i < kArgBlock; i += L::kWidth) {
      auto v = Load(x + i) * key.sign;
      found |= top != top ? v != v : v == top;
    }
    return Any(found);
  } else {
    T found = 0;
    for (int64_t i = 0; i < kArgBlock; ++i) found |= static_cast<T>(key(x[i]) == top);
    return found != 0;
  }
}

// Returns the first or the last position of the largest key in a line.
template <typename T>
MGE_INLINE int64_t ArgLine(const T* x, int64_t n, bool last, ArgKey<T> key) {
  auto top = TopKey(x, n, key);
  if (last) {
    int64_t i = n;
    while (i >= kArgBlock && !HasTop(x + i - kArgBlock, top, key)) i -= kArgBlock;
    while (!IsTop(key(x[--i]), top)) {
    }
    return i;
  }
  int64_t i = 0;
  while (i + kArgBlock <= n && !HasTop(x + i, top, key)) i += kArgBlock;
  while (!IsTop(key(x[i]), top)) ++i;
  return i;
}

// Searches up to kArgBlock neighbouring columns. The compiler vectorises the loops over them.
template <typename T>
MGE_INLINE void ArgColumns(const ArgSpec& s, const T* x, int64_t columns, int64_t* y, ArgKey<T> key) {
  using K = typename ArgKey<T>::C;
  using C = std::conditional_t<sizeof(K) < 4, int32_t, K>;
  using I = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  C row[kArgBlock], best[kArgBlock];
  I at[kArgBlock];
  auto load = [&](int64_t i) {
    const T* p = x + i * s.inner;
    if constexpr (kFloat<T> && sizeof(T) == 2) {
      constexpr int W = LaneOf<T>::kWidth;
      for (int64_t k = 0; k < columns; k += W) {
        int left = static_cast<int>(columns - k < W ? columns - k : W);
        Store(row + k, LaneOf<T>::Get(p + k, left) * key.sign);
      }
    } else {
      for (int64_t k = 0; k < columns; ++k) row[k] = static_cast<C>(key(p[k]));
    }
  };
  auto place = [&](int64_t i) { return s.last ? s.n - 1 - i : i; };  // the first found is kept
  load(place(0));
  for (int64_t k = 0; k < columns; ++k) best[k] = row[k], at[k] = 0;
  for (int64_t i = 1; i < s.n; ++i) {
    load(place(i));
    const I now = static_cast<I>(i);
    for (int64_t k = 0; k < columns; ++k) {
      const bool better = (row[k] > best[k]) | ((row[k] != row[k]) & (best[k] == best[k]));
      best[k] = better ? row[k] : best[k];
      at[k] = better ? now : at[k];
    }
  }
  for (int64_t k = 0; k < columns; ++k) y[k] = place(at[k]);
}

template <typename T>
void Arg(const ArgSpec& s, const void* source, int64_t* y, int64_t begin, int64_t end) {
  auto* x = static_cast<const T*>(source);
  const ArgKey<T> key(s.minimum);
  if (s.inner == 1) {
    for (int64_t u = begin; u < end; ++u) *y++ = ArgLine(x + u * s.n, s.n, s.last, key);
    return;
  }
  for (int64_t u = begin; u < end;) {
    const int64_t column = u % s.inner;
    int64_t columns = s.inner - column < end - u ? s.inner - column : end - u;
    columns = columns < kArgBlock ? columns : kArgBlock;
    ArgColumns(s, x + u / s.inner * s.n * s.inner + column, columns, y, key);
    u += columns;
    y += columns;
  }
}

ArgFn FindArg(mge_dtype type) {
  ArgFn f = nullptr;
  DispatchFloating(type, [&](auto tag) { f = Arg<typename decltype(tag)::type>; });
  if constexpr (kWithIntegers) DispatchInteger(type, [&](auto tag) { f = Arg<typename decltype(tag)::type>; });
  return f;
}

}  // namespace

extern const ReduceTable kReduce = {Find, FindArg};

}  // namespace mge::cpu::MGE_CPU_ISA
