// SPDX-License-Identifier: Apache-2.0
// Elementary functions of vectors. float: polynomials with an error of at most 4 units in the last place. double: the C
// library, lane by lane. Coefficients are minimax fits of the reduced functions. Included by vec/*.cc only.
#pragma once

#include <math.h>

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {

// Evaluates a polynomial by Horner's rule, lowest coefficient first.
template <int N>
MGE_INLINE VF Polynomial(VF x, const float (&c)[N]) {
  VF r = Splat(c[N - 1]);
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

MGE_INLINE VF Exp(VF x) {
  VF clamped = MinRaw(Splat(89.0f), MaxRaw(Splat(-104.0f), x));  // in this order NaN stays NaN
  VF n = RoundEven(clamped * 1.44269504f);
  VF r = Fma(n, Splat(-0.693359375f), clamped);
  r = Fma(n, Splat(2.12194440e-4f), r);
  VF q = Polynomial(r, {0.5f, 0.166665182f, 0.041666206f, 0.00836890843f, 0.0013950523f});
  return ScaleByPowerOfTwo(Fma(q, r * r, r) + 1.0f, n);
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

// Returns log(1 + y) for y >= 0, with a first-order correction of the rounding of 1 + y.
MGE_INLINE VF Log1pPositive(VF y) {
  VF u = 1.0f + y;
  return Log(u) + (y - (u - 1.0f)) / u;
}

MGE_INLINE VF Tanh(VF x) {
  VF a = Abs(x), z = x * x;
  VF p = Polynomial(z, {-0.333332837f, 0.133314908f, -0.0537434965f, 0.0206505861f, -0.00571704376f});
  VF small = Fma(p * z, x, x);
  VF large = 1.0f - 2.0f / (Exp(a + a) + 1.0f);
  return a < 0.625f ? small : CopySign(large, x);
}

MGE_INLINE VF Sigmoid(VF x) {
  VF e = Exp(-Abs(x));
  VF d = 1.0f / (1.0f + e);
  return x < 0.0f ? e * d : d;
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

MGE_INLINE VF Softplus(VF x) { return Max(x, Splat(0.0f)) + Log1pPositive(Exp(-Abs(x))); }

// Returns e^x - 1 without cancellation.
MGE_INLINE VF Expm1(VF x) {
  VF t = Tanh(x * 0.5f);  // e^x - 1 = 2 t / (1 - t)
  VF near_zero = (t + t) / (1.0f - t);
  return Abs(x) < 0.7f ? near_zero : Exp(x) - 1.0f;
}

#define MGE_DOUBLE_BY_LANE(Name, expression) \
  MGE_INLINE VD Name(VD v) {                 \
    for (int i = 0; i < kD; ++i) {           \
      double x = v[i];                       \
      v[i] = expression;                     \
    }                                        \
    return v;                                \
  }
MGE_DOUBLE_BY_LANE(Exp, exp(x))
MGE_DOUBLE_BY_LANE(Log, log(x))
MGE_DOUBLE_BY_LANE(Tanh, tanh(x))
MGE_DOUBLE_BY_LANE(Sigmoid, (x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x))))
MGE_DOUBLE_BY_LANE(Erf, erf(x))
MGE_DOUBLE_BY_LANE(Softplus, (x > 0 ? x : 0) + log1p(exp(-fabs(x))))
MGE_DOUBLE_BY_LANE(Expm1, expm1(x))
#undef MGE_DOUBLE_BY_LANE

}  // namespace mge::cpu::MGE_CPU_ISA
