// SPDX-License-Identifier: Apache-2.0
// Trigonometric and hyperbolic functions of vectors, and their inverses, with an error of at most 4 units in the last place.
// double has vectors for sine, cosine and tangent; the other functions are the C library's, lane by lane. Coefficients are
// minimax fits of the reduced functions. Included by vec/*.cc only.
#pragma once

#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {

// ---------------------------------------------------------------- sine, cosine, tangent

// An angle as quadrant * pi/2 + rest, with |rest| <= pi/4. Angles beyond the limit would need more digits of pi.
inline constexpr double kAngleLimit = 1e6;
template <typename V>
using MaskOf = decltype(V{} < V{});
template <typename V>
struct Angle {
  V rest;
  MaskOf<V> swaps;     // whether sine and cosine change places: odd quadrants
  MaskOf<V> negative;  // whether the sine is negative: quadrants 2 and 3
};

// The digits of pi/2 are in parts of 33 bits, whose products with a quadrant are exact.
inline constexpr double kPiHalf1 = 0x1.921fb544p+0, kPiHalf2 = 0x1.0b4611a6p-34, kPiHalf3 = 0x1.3198a2e037073p-69;

MGE_INLINE Angle<VD> Reduce(VD x, double quarter) {
  VD n = RoundEven(x * 0.63661977236758134);
  VD rest = ((x - n * kPiHalf1) - n * kPiHalf2) - n * kPiHalf3;
  VL quadrant = (VL)(n + (0x1.8p52 + quarter));  // its lowest bits
  return {rest, (quadrant & 1) != 0, (quadrant & 2) != 0};
}

// Computes in double what float would cancel.
MGE_INLINE Angle<VF> Reduce(VF x, float quarter) {
  Wide w = ToVD(x);
  auto count = [](VD v) { return RoundEven(v * 0.63661977236758134); };
  auto rest = [](VD v, VD n) { return (v - n * kPiHalf1) - n * (kPiHalf2 + kPiHalf3); };
  VD low = count(w.low), high = count(w.high);
  VI quadrant = ToVI(ToVF(Wide{low, high})) + static_cast<int32_t>(quarter);
  return {ToVF(Wide{rest(w.low, low), rest(w.high, high)}), (quadrant & 1) != 0, (quadrant & 2) != 0};
}

MGE_INLINE VF SineOfRest(VF r) {
  VF z = r * r;
  return Fma(Polynomial(z, {-0.166666646f, 0.00833273656f, -0.000195853732f}) * z, r, r);
}
MGE_INLINE VF CosineOfRest(VF r) {
  VF z = r * r;
  return Fma(Polynomial(z, {0.0416666646f, -0.00138882913f, 2.45454191e-5f}) * z, z, 1.0f - 0.5f * z);
}
MGE_INLINE VD SineOfRest(VD r) {
  VD z = r * r;
  return Fma(Polynomial(z, {-0.16666666666666664, 0.008333333333330827, -0.00019841269836575709, 2.7557316008171551e-6,
                            -2.505111227257324e-8, 1.591672619388911e-10}) *
                 z,
             r, r);
}
MGE_INLINE VD CosineOfRest(VD r) {
  VD z = r * r, half = 0.5 * z, high = 1.0 - half;
  VD p = Polynomial(z, {0.041666666666666665, -0.0013888888888887321, 2.4801587298651292e-5, -2.755731721268659e-7,
                        2.0876134024090144e-9, -1.1381754653662794e-11});
  return high + (((1.0 - high) - half) + z * z * p);
}

// Replaces the lanes beyond the limit by `library` of them.
template <typename V, typename F>
MGE_INLINE V WithFarAngles(V x, V result, F library) {
  auto far = Abs(x) > static_cast<decltype(x[0] + 0)>(kAngleLimit);
  if (__builtin_expect(Any(far), 0)) {
    for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(x[0])); ++i) {
      if (far[i]) result[i] = static_cast<decltype(x[0] + 0)>(library(static_cast<double>(x[i])));
    }
  }
  return result;
}

// Returns the sine of x + quarter * pi/2.
template <typename V, typename F>
MGE_INLINE V SineBeyond(V x, int quarter, F library) {
  Angle<V> a = Reduce(x, static_cast<decltype(x[0] + 0)>(quarter));
  V s = a.swaps ? CosineOfRest(a.rest) : SineOfRest(a.rest);
  return WithFarAngles(x, a.negative ? -s : s, library);
}
template <typename V>
MGE_INLINE V Sin(V x) {
  V r = SineBeyond(x, 0, [](double v) { return sin(v); });
  return x == 0 ? x : r;  // keeps -0
}
template <typename V>
MGE_INLINE V Cos(V x) {
  return SineBeyond(x, 1, [](double v) { return cos(v); });
}
template <typename V>
MGE_INLINE V Tan(V x) {
  Angle<V> a = Reduce(x, decltype(x[0] + 0){0});
  V s = SineOfRest(a.rest), c = CosineOfRest(a.rest);
  V r = (a.swaps ? -c : s) / (a.swaps ? s : c);
  r = WithFarAngles(x, r, [](double v) { return tan(v); });
  return x == 0 ? x : r;
}

// ---------------------------------------------------------------- inverses

// Reduces to |t| <= tan(pi/8) by the addition theorem with 0, pi/4 and pi/2.
MGE_INLINE VF Atan(VF x) {
  VF a = Abs(x);
  VI far = a > 2.41421356f, middle = a > 0.414213562f;
  VF t = (far ? Splat(-1.0f) : middle ? a - 1.0f : a) / (far ? a : middle ? a + 1.0f : Splat(1.0f));
  VF z = t * t;
  VF p = Polynomial(z, {-0.333333317f, 0.199995234f, -0.142633666f, 0.10737397f, -0.0643103871f});
  VF base = far ? Splat(1.57079633f) : middle ? Splat(0.785398163f) : Splat(0.0f);
  return CopySign(base + Fma(p * z, t, t), x);
}

// For the arc sine and cosine: the arc sine of a, or for a > 1/2 of sqrt((1 - a) / 2), which is half the arc cosine of a.
MGE_INLINE VF ArcOf(VF a) {
  VI large = a > 0.5f;
  VF z = large ? 0.5f * (1.0f - a) : a * a;
  VF s = large ? Sqrt(z) : a;
  return Fma(Polynomial(z, {0.166666724f, 0.0749885507f, 0.0450013801f, 0.0265545422f, 0.0380850236f}) * z, s, s);
}
MGE_INLINE VF Asin(VF x) {
  VF a = Abs(x), p = ArcOf(a);
  return CopySign(a > 0.5f ? 1.57079633f - 2.0f * p : p, x);
}
MGE_INLINE VF Acos(VF x) {
  VF a = Abs(x), p = ArcOf(a);
  VF near_one = x < 0.0f ? 3.14159265f - 2.0f * p : 2.0f * p;
  return a > 0.5f ? near_one : 1.57079633f - CopySign(p, x);
}

// ---------------------------------------------------------------- hyperbolic functions

MGE_INLINE VF Sinh(VF x) {
  VF z = x * x, half = ExpTimesPowerOfTwo(Abs(x), -1.0f);
  VF small = Fma(Polynomial(z, {0.166666666f, 0.00833333968f, 0.00019838102f, 2.80628026e-6f}) * z, x, x);
  return Abs(x) < 1.0f ? small : CopySign(half - 0.25f / half, x);
}
MGE_INLINE VF Cosh(VF x) {
  VF half = ExpTimesPowerOfTwo(Abs(x), -1.0f);
  return half + 0.25f / half;
}

// Beyond this, the square of a number exceeds every smaller term.
inline constexpr float kHuge = 1e9f;
inline constexpr float kLogOfTwo = 0.693147181f;

MGE_INLINE VF Asinh(VF x) {
  VF a = Abs(x);
  VF r = Log1pPositive(a + a * a / (1.0f + Sqrt(1.0f + a * a)));
  return CopySign(a > kHuge ? Log(a) + kLogOfTwo : r, x);
}
MGE_INLINE VF Acosh(VF x) {
  VF t = x - 1.0f;
  VF r = x > kHuge ? Log(x) + kLogOfTwo : Log1pPositive(t + Sqrt(t * (t + 2.0f)));
  return x < 1.0f ? Splat(__builtin_nanf("")) : r;
}
MGE_INLINE VF Atanh(VF x) {
  VF a = Abs(x);
  VF r = 0.5f * Log1pPositive((a + a) / (1.0f - a));
  return CopySign(a == 1.0f ? Splat(__builtin_inff()) : r, x);
}

#define MGE_DOUBLE_BY_LANE(Name, name)              \
  MGE_INLINE VD Name(VD x) {                        \
    for (int i = 0; i < kD; ++i) x[i] = name(x[i]); \
    return x;                                       \
  }
MGE_DOUBLE_BY_LANE(Asin, asin)
MGE_DOUBLE_BY_LANE(Acos, acos)
MGE_DOUBLE_BY_LANE(Atan, atan)
MGE_DOUBLE_BY_LANE(Sinh, sinh)
MGE_DOUBLE_BY_LANE(Cosh, cosh)
MGE_DOUBLE_BY_LANE(Asinh, asinh)
MGE_DOUBLE_BY_LANE(Acosh, acosh)
MGE_DOUBLE_BY_LANE(Atanh, atanh)
#undef MGE_DOUBLE_BY_LANE

}  // namespace mge::cpu::MGE_CPU_ISA
