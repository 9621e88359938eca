// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include <type_traits>

#include "vec/simd.h"
#include "vec/tile.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Converts a float to an integer: truncates towards zero, saturates, NaN becomes 0.
template <typename To, typename From>
MGE_INLINE To FloatToInteger(From x) {
  constexpr bool kSignedTo = static_cast<To>(-1) < 0;
  constexpr int kBits = sizeof(To) * 8 - (kSignedTo ? 1 : 0);
  constexpr From kEnd = static_cast<From>(2) * static_cast<From>(1ull << (kBits - 1));  // first value that is too large
  constexpr To kHighest = static_cast<To>((1ull << (kBits - 1)) - 1 + (1ull << (kBits - 1)));
  constexpr To kLowest = kSignedTo ? static_cast<To>(1ull << (sizeof(To) * 8 - 1)) : To{0};
  if (!(x < kEnd)) return x != x ? To{0} : kHighest;
  if (kSignedTo ? x < -kEnd : x <= -1) return kLowest;
  return static_cast<To>(x);
}

// Converts a double to float, rounding to odd: the last bit records that bits were lost. Rounding the result to 16 bits then
// gives the same value as rounding the double directly.
MGE_INLINE float RoundToOdd(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || f - f != 0) return f;
  uint32_t bits;
  __builtin_memcpy(&bits, &f, 4);
  if (fabs(static_cast<double>(f)) > fabs(x)) --bits;  // towards zero
  bits |= 1u;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}

template <typename To, typename From>
MGE_INLINE To Convert(From x) {
  if constexpr (std::is_same_v<From, F16> || std::is_same_v<From, BF16>) {
    return Convert<To>(Widen(x));
  } else if constexpr ((std::is_same_v<To, F16> || std::is_same_v<To, BF16>)&&!std::is_same_v<From, float>) {
    return Convert<To>(RoundToOdd(static_cast<double>(x)));
  } else if constexpr (std::is_same_v<To, F16>) {
    return ToF16(x);
  } else if constexpr (std::is_same_v<To, BF16>) {
    return ToBF16(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return FloatToInteger<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void Cast(const void* a, const void*, const void*, void* out, int64_t n, const float*) {
  auto* x = static_cast<const From*>(a);
  auto* y = static_cast<To*>(out);
  int64_t i = 0;
  if constexpr ((std::is_same_v<From, float> && sizeof(To) == 2 && std::is_class_v<To>) ||
                (std::is_same_v<To, float> && sizeof(From) == 2 && std::is_class_v<From>)) {
    for (; i + kF <= n; i += kF) Store(y + i, Load(x + i));
    if (i < n) StoreN(y + i, LoadN(x + i, static_cast<int>(n - i)), static_cast<int>(n - i));
  } else {
#pragma GCC ivdep
    for (; i < n; ++i) y[i] = Convert<To>(x[i]);
  }
}

template <typename F>
MGE_INLINE bool DispatchAll(mge_dtype type, F f) {
  return DispatchNumeric(type, f) || DispatchTo<bool>(type, f);
}

TileFn Find(mge_dtype from, mge_dtype to) {
  TileFn f = nullptr;
  if constexpr (!kWithIntegers) {
    DispatchTo<float, F16, BF16>(from, [&](auto a) {
      DispatchTo<float, F16, BF16>(to, [&](auto b) { f = Cast<typename decltype(a)::type, typename decltype(b)::type>; });
    });
    return f;
  }
  DispatchAll(from, [&](auto a) {
    DispatchAll(to, [&](auto b) { f = Cast<typename decltype(a)::type, typename decltype(b)::type>; });
  });
  return f;
}

}  // namespace

extern const TileCastTable kTileCast = {Find};

}  // namespace mge::cpu::MGE_CPU_ISA
