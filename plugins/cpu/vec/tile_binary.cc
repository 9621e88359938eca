// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include <type_traits>

#include "vec/simd.h"
#include "vec/tile.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <int Mode, typename T, typename R, typename F>
MGE_INLINE void MapPairs(const void* a, const void* b, void* out, int64_t n, F f) {
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* z = static_cast<R*>(out);
  if constexpr (Mode == kTileScalarA) {
    T s = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(s, y[i]);
  } else if constexpr (Mode == kTileScalarB) {
    T s = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], s);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
  }
}

template <typename T, int Mode>
TileFn FindCommon(TileOp op) {
#define MGE_PAIRS(kOp, R, expression)                                                          \
  case TileOp::kOp:                                                                            \
    return [](const void* a, const void* b, const void*, void* out, int64_t n, const float*) { \
      MapPairs<Mode, T, R>(a, b, out, n, [](T x, T y) { return static_cast<R>(expression); }); \
    }
  switch (op) {
    MGE_PAIRS(kEqual, uint8_t, x == y);
    MGE_PAIRS(kGreater, uint8_t, x > y);
    MGE_PAIRS(kGreaterOrEqual, uint8_t, x >= y);
    MGE_PAIRS(kLess, uint8_t, x < y);
    MGE_PAIRS(kLessOrEqual, uint8_t, x <= y);
    default: return nullptr;
  }
}

template <typename T, int Mode>
TileFn FindFloat(TileOp op) {
  switch (op) {
    MGE_PAIRS(kAdd, T, x + y);
    MGE_PAIRS(kSub, T, x - y);
    MGE_PAIRS(kMul, T, x * y);
    MGE_PAIRS(kDiv, T, x / y);
    MGE_PAIRS(kMax, T, x != x || x > y ? x : y);
    MGE_PAIRS(kMin, T, x != x || x < y ? x : y);
    MGE_PAIRS(kPow, T, pow(x, y));
    MGE_PAIRS(kFmod, T, fmod(x, y));
    MGE_PAIRS(kPRelu, T, x < 0 ? x * y : x);
    default: return FindCommon<T, Mode>(op);
  }
}

template <typename T>
MGE_INLINE T WrappingPower(T base, T exponent) {
  if (exponent < 0) return 0;
  unsigned long long b = static_cast<unsigned long long>(base), r = 1, e = static_cast<unsigned long long>(exponent);
  for (; e; e >>= 1, b *= b) {
    if (e & 1) r *= b;
  }
  return static_cast<T>(r);
}

// Returns x / y. The divisors 0 and -1 would trap: -1 negates and wraps around; programs whose divisor may be 0 are refused
// (support/program.cc). Narrow numbers are multiplied by a reciprocal in floats, which the compiler computes once for a single
// divisor: half a unit away from 0, the product is farther from each integer than rounding moves it.
template <typename T>
MGE_INLINE T Quotient(T x, T y) {
  const bool negates = T(-1) < 0 && y == static_cast<T>(-1);
  if constexpr (sizeof(T) < 8) {
    using F = std::conditional_t<(sizeof(T) < 4), float, double>;
    using Whole = std::conditional_t<(sizeof(T) < 4), int32_t, std::conditional_t<std::is_signed_v<T>, T, int64_t>>;
    const T divisor = y == 0 || negates ? T{1} : y;
    const F half = x < 0 ? F(-0.5) : F(0.5);
    const T q = static_cast<T>(static_cast<Whole>((static_cast<F>(x) + half) * (1 / static_cast<F>(divisor))));
    return y == 0 ? T{0} : negates ? static_cast<T>(0 - static_cast<unsigned long long>(x)) : q;
  }
  if (y == 0) return 0;
  if (negates) return static_cast<T>(0 - static_cast<unsigned long long>(x));
  return static_cast<T>(x / y);
}
template <typename T>
MGE_INLINE T Remainder(T x, T y) {
  if constexpr (sizeof(T) < 8) {
    using U = unsigned long long;
    const T r = static_cast<T>(static_cast<U>(x) - static_cast<U>(Quotient(x, y)) * static_cast<U>(y));
    return y == 0 ? T{0} : r;
  }
  if (y == 0 || (T(-1) < 0 && y == static_cast<T>(-1))) return 0;
  return static_cast<T>(x % y);
}
template <typename T>
MGE_INLINE T FloorModulo(T x, T y) {
  T r = Remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

template <typename T, int Mode>
TileFn FindDivision(TileOp op) {
  switch (op) {
    MGE_PAIRS(kDiv, T, Quotient(x, y));
    MGE_PAIRS(kMod, T, FloorModulo(x, y));
    MGE_PAIRS(kFmod, T, Remainder(x, y));
    default: return nullptr;
  }
}

template <typename T, int Mode>
TileFn FindInteger(TileOp op) {
  using U = unsigned long long;
  switch (op) {
    MGE_PAIRS(kAdd, T, static_cast<U>(x) + static_cast<U>(y));
    MGE_PAIRS(kSub, T, static_cast<U>(x) - static_cast<U>(y));
    MGE_PAIRS(kMul, T, static_cast<U>(x) * static_cast<U>(y));
    MGE_PAIRS(kMax, T, x > y ? x : y);
    MGE_PAIRS(kMin, T, x < y ? x : y);
    MGE_PAIRS(kPow, T, WrappingPower(x, y));
    MGE_PAIRS(kPRelu, T, x < 0 ? static_cast<U>(x) * static_cast<U>(y) : static_cast<U>(x));
    default: break;
  }
  TileFn f = FindDivision<T, Mode>(op);
  return f ? f : FindCommon<T, Mode>(op);
}
#undef MGE_PAIRS

template <int Mode>
TileFn FindMode(TileOp op, mge_dtype type) {
  TileFn f = nullptr;
  if (DispatchTo<float, double>(type, [&](auto tag) { f = FindFloat<typename decltype(tag)::type, Mode>(op); })) {
    return f;
  }
  if (type == MGE_DTYPE_I32) f = FindDivision<int32_t, Mode>(op);  // limited by arithmetic, not by memory
  if constexpr (kWithIntegers) {
    DispatchInteger(type, [&](auto tag) { f = FindInteger<typename decltype(tag)::type, Mode>(op); });
    if (type == MGE_DTYPE_BOOL) f = FindCommon<uint8_t, Mode>(op);
  }
  return f;
}

TileFn Find(TileOp op, mge_dtype type, int mode) {
  switch (mode) {
    case kTileVectors: return FindMode<kTileVectors>(op, type);
    case kTileScalarA: return FindMode<kTileScalarA>(op, type);
    case kTileScalarB: return FindMode<kTileScalarB>(op, type);
    default: return nullptr;
  }
}

}  // namespace

extern const TileBinaryTable kTileBinary = {Find};

}  // namespace mge::cpu::MGE_CPU_ISA
