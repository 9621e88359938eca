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

// Finds the extreme element. NaN is larger, and smaller, than every number.
template <typename T>
void Arg(const ArgSpec& s, const void* source, int64_t* y, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    auto* x = static_cast<const T*>(source) + u / s.inner * s.n * s.inner + u % s.inner;
    auto value = [&](int64_t i) {
      if constexpr (kFloat<T> && sizeof(T) == 2) {
        return Widen(x[i * s.inner]);
      } else {
        return x[i * s.inner];
      }
    };
    auto best = value(0);
    int64_t at = 0;
    for (int64_t i = 1; i < s.n; ++i) {
      auto v = value(i);
      bool better = s.minimum ? v < best : v > best;
      better |= v != v && best == best;
      better &= best == best || s.last;
      if (better || (s.last && (v == best || (v != v && best != best)))) {
        best = v;
        at = i;
      }
    }
    y[u] = at;
  }
}

ArgFn FindArg(mge_dtype type) {
  ArgFn f = nullptr;
  if constexpr (kWithIntegers) DispatchNumeric(type, [&](auto tag) { f = Arg<typename decltype(tag)::type>; });
  return f;
}

}  // namespace

extern const ReduceTable kReduce = {Find, FindArg};

}  // namespace mge::cpu::MGE_CPU_ISA
