// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms and functions of them for vectors: polynomials with an error of at most 4 units in the last place.
// Erf of double is the C library's, lane by lane. Coefficients are minimax fits of the reduced functions. Included by
// vec/*.cc only.
#pragma once

#include <math.h>

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {

// Evaluates a polynomial by Horner's rule, lowest coefficient first.
template <typename V, typename C, int N>
MGE_INLINE V Polynomial(V x, const C (&c)[N]) {
  V r = Splat(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) r = Fma(r, x, Splat(c[i]));
  return r;
}

// Returns x * 2^n for integers -252 <= n <= 254. Results may be subnormal.
#if defined(__AVX512F__)
MGE_INLINE VF ScaleByPowerOfTwo(VF x, VF n) { return (VF)_mm512_scalef_ps((__m512)x, (__m512)n); }
#else
MGE_INLINE VF ScaleByPowerOfTwo(VF x, VF whole) {
  VI n = ToVI(whole), half = n >> 1;
  return x * (VF)((half + 127) << 23) * (VF)((n - half + 127) << 23);
}
#endif

// The same for double and -1080 <= n <= 1030.
#if defined(__AVX512F__)
MGE_INLINE VD ScaleByPowerOfTwo(VD x, VD n) { return (VD)_mm512_scalef_pd((__m512d)x, (__m512d)n); }
#else
MGE_INLINE VD ScaleByPowerOfTwo(VD x, VD n) {
  // Adding 2^52 leaves an integer in the lowest bits; the shift makes it an exponent.
  auto power = [](VD k) { return (VD)((VL)(k + (0x1p52 + 1023)) << 52); };
  VD half = Floor(n * 0.5);
  return x * power(half) * power(n - half);
}
#endif

// Returns e^x * 2^power for -2 <= power <= 2.
MGE_INLINE VF ExpTimesPowerOfTwo(VF x, float power) {
  VF clamped = MinRaw(Splat(92.0f), MaxRaw(Splat(-106.0f), x));  // in this order NaN stays NaN
  VF n = RoundEven(clamped * 1.44269504f);
  VF r = Fma(n, Splat(-0.693359375f), clamped);
  r = Fma(n, Splat(2.12194440e-4f), r);
  VF q = Polynomial(r, {0.5f, 0.166665182f, 0.041666206f, 0.00836890843f, 0.0013950523f});
  return ScaleByPowerOfTwo(Fma(q, r * r, r) + 1.0f, n + power);
}
MGE_INLINE VF Exp(VF x) { return ExpTimesPowerOfTwo(x, 0); }

MGE_INLINE VD Exp(VD x) {
  VD clamped = MinRaw(Splat(710.0), MaxRaw(Splat(-746.0), x));
  VD n = RoundEven(clamped * 1.4426950408889634);
  VD r = Fma(n, Splat(-0.69314718036912382), clamped);
  r = Fma(n, Splat(-1.9082149292705878e-10), r);
  VD q = Polynomial(r, {0.5, 0.16666666666666671, 0.04166666666666667, 0.0083333333333260831, 0.0013888888888883711,
                        0.00019841269875002279, 2.4801587325677462e-5, 2.7557255170000887e-6, 2.755727347871858e-7,
                        2.5105312729622102e-8, 2.0914755325893202e-9});
  return ScaleByPowerOfTwo(Fma(q, r * r, r) + 1.0, n);
}

MGE_INLINE VF Log(VF x) {
  VF tiny = x < 1.17549435e-38f ? x * 8388608.0f : x;  // makes subnormals normal
  VI shifted = (VI)((VU)tiny - 0x3f3504f3u);           // exponents begin at sqrt(1/2)
  VF e = ToVF((shifted >> 23) - (x < 1.17549435e-38f ? SplatI(23) : SplatI(0)));
  VF m = (VF)((shifted & 0x007fffff) + 0x3f3504f3);
  VF f = m - 1.0f;
  VF p = Polynomial(f, {0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195508f, -0.124055922f, 0.118881777f,
                        -0.116756387f, 0.0674659163f});
  VF f2 = f * f;
  VF r = p * f2 * f;
  r = Fma(e, Splat(-2.12194440e-4f), r);
  r = Fma(f2, Splat(-0.5f), r);
  r = Fma(e, Splat(0.693359375f), f + r);
  r = x == __builtin_inff() ? x : r;
  r = x == 0.0f ? Splat(-__builtin_inff()) : r;
  return x < 0.0f ? Splat(__builtin_nanf("")) : x != x ? x : r;
}

MGE_INLINE VD Log(VD x) {
  constexpr double kTiny = 0x1p-1022;
  constexpr int64_t kRootBits = 0x3fe6a09e667f3bcd;  // of sqrt(1/2)
  VD tiny = x < kTiny ? x * 0x1p54 : x;
  VL shifted = (VL)tiny - kRootBits;
  VL exponent = (VL)((VU64)(shifted + (int64_t{1} << 62)) >> 52) - (int64_t{1} << 10);
  VD e = (VD)(exponent + 0x4338000000000000) - 0x1.8p52;
  e = x < kTiny ? e - 54.0 : e;
  VD f = (VD)((shifted & 0x000fffffffffffff) + kRootBits) - 1.0;
  VD s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  VD p = z * Polynomial(z, {0.66666666666666699, 0.39999999999893222, 0.28571428628810996, 0.22222210674238512,
                            0.18182922513516105, 0.15330617306738906, 0.14630031364168406});
  VD r = Fma(e, Splat(0.69314718036912382), f - (half - (s * (half + p) + e * 1.9082149292705878e-10)));
  r = x == __builtin_inf() ? x : r;
  r = x == 0.0 ? Splat(-__builtin_inf()) : r;
  return x < 0.0 ? Splat(__builtin_nan("")) : x != x ? x : r;
}

// Returns log(1 + y) for y >= 0, with a first-order correction of the rounding of 1 + y.
template <typename V>
MGE_INLINE V Log1pPositive(V y) {
  V u = 1 + y;
  return Log(u) + (y - (u - 1)) / u;
}

MGE_INLINE VF Tanh(VF x) {
  VF a = Abs(x), z = x * x;
  VF p = Polynomial(z, {-0.333332837f, 0.133314908f, -0.0537434965f, 0.0206505861f, -0.00571704376f});
  VF small = Fma(p * z, x, x);
  VF large = 1.0f - 2.0f / (Exp(a + a) + 1.0f);
  return a < 0.625f ? small : CopySign(large, x);
}

MGE_INLINE VD Tanh(VD x) {
  VD a = Abs(x), z = x * x;
  VD p = Polynomial(z, {-0.33333333333333333, 0.13333333333333042, -0.053968253967896992, 0.021869488519008306,
                        -0.0088632351032408779, 0.003592121751154962, -0.001455775412047804, 0.0005896606577756978,
                        -0.00023759064960553755, 9.257116129553425e-5, -3.1201101425763225e-5, 6.4851634827779223e-6});
  VD small = Fma(p * z, x, x);
  VD large = 1.0 - 2.0 / (Exp(a + a) + 1.0);
  return a < 0.625 ? small : CopySign(large, x);
}

template <typename V>
MGE_INLINE V Sigmoid(V x) {
  V e = Exp(-Abs(x));
  V d = 1 / (1 + e);
  return x < 0 ? e * d : d;
}

MGE_INLINE VF Erf(VF x) {
  VF z = x * x;
  VF small = Fma(Polynomial(z, {0.128379166f, -0.376126349f, 0.112836942f, -0.0268592704f, 0.00520063424f, -0.000813743798f,
                                8.3452258e-05f}),
                 x, x);
  VF a = MinRaw(Abs(x), Splat(4.1f));
  VF q = Polynomial(a, {-0.000174683402f, 1.12951493f, 0.633346915f, 0.108280078f, -0.0251194183f, 0.00417105947f,
                        -0.000434461836f, 2.10949784e-05f});
  VF r = Abs(x) < 0.93f ? small : CopySign(1.0f - Exp(-q), x);
  return x != x ? x : r;
}

template <typename V>
MGE_INLINE V Softplus(V x) {
  return Max(x, V{}) + Log1pPositive(Exp(-Abs(x)));
}

// Returns e^x - 1 without cancellation.
template <typename V>
MGE_INLINE V Expm1(V x) {
  V t = Tanh(x / 2);  // e^x - 1 = 2 t / (1 - t)
  V near_zero = (t + t) / (1 - t);
  return Abs(x) * 10 < 7 ? near_zero : Exp(x) - 1;
}

MGE_INLINE VD Erf(VD v) {
  for (int i = 0; i < kD; ++i) v[i] = erf(v[i]);
  return v;
}

}  // namespace mge::cpu::MGE_CPU_ISA
