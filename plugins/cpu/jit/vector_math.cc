// SPDX-License-Identifier: Apache-2.0
#include "jit/vector_math.h"

#include <initializer_list>
#include <limits>

namespace mge::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallestNormal = 1.17549435e-38f;

// Evaluates a polynomial by Horner's rule, lowest coefficient first.
Reg Polynomial(VectorCode& v, const Reg& x, std::initializer_list<float> c) {
  const float* next = c.end() - 1;
  Reg r = v.Load(*next);
  while (next != c.begin()) r = v.Fma(std::move(r), x, v.Const(*--next));
  return r;
}

// Returns x * 2^n for integers -252 <= n <= 254. Results may be subnormal.
Reg ScaleByPowerOfTwo(VectorCode& v, Reg x, Reg n) {
  if (v.is_wide()) return v.Scale(std::move(x), n);
  Reg whole = v.ToInt(std::move(n));
  Reg half = v.ShiftRightArithmetic(whole, 1);
  Reg rest = v.SubInt(std::move(whole), half);
  x = v.Mul(std::move(x), v.ShiftLeft(v.AddInt(std::move(half), v.Bits(127)), 23));
  return v.Mul(std::move(x), v.ShiftLeft(v.AddInt(std::move(rest), v.Bits(127)), 23));
}

// Returns e^-|x|.
Reg ExpOfMinusMagnitude(VectorCode& v, const Reg& x) { return EmitExp(v, v.Or(x, v.Bits(0x80000000u))); }

}  // namespace

Reg EmitExp(VectorCode& v, Reg x) {
  Reg clamped = v.MaxRaw(v.Shared(-106.0f), x);
  x = {};                                        // free for the following
  clamped = v.MinRaw(v.Shared(92.0f), clamped);  // in this order NaN stays NaN
  Reg n = v.Round(v.Mul(clamped, v.Const(1.44269504f)), VectorCode::Rounding::kEven);
  Reg r = v.AddProduct(std::move(clamped), n, v.Const(-0.693359375f));
  r = v.AddProduct(std::move(r), n, v.Const(2.12194440e-4f));
  Reg q = Polynomial(v, r, {0.5f, 0.166665182f, 0.041666206f, 0.00836890843f, 0.0013950523f});
  Reg square = v.Mul(r, r);
  q = v.Fma(std::move(q), square, r);
  return ScaleByPowerOfTwo(v, v.Add(std::move(q), v.Const(1.0f)), std::move(n));
}

Reg EmitLog(VectorCode& v, const Reg& x) {
  Reg tiny = v.Mul(x, v.Const(8388608.0f));
  tiny = v.Blend(v.Where(Compare::kLess, x, v.Const(kSmallestNormal)), tiny, x);  // makes subnormals normal
  Reg shifted = v.SubInt(std::move(tiny), v.Bits(0x3f3504f3u));                   // exponents begin at sqrt(1/2)
  Reg exponent = v.ShiftRightArithmetic(shifted, 23);
  {
    Reg lower = v.SubInt(exponent, v.Bits(23));
    exponent = v.Blend(v.Where(Compare::kLess, x, v.Const(kSmallestNormal)), lower, std::move(exponent));
  }
  Reg e = v.ToFloat(std::move(exponent));
  Reg m = v.AddInt(v.And(std::move(shifted), v.Bits(0x007fffffu)), v.Bits(0x3f3504f3u));
  Reg f = v.Sub(std::move(m), v.Const(1.0f));
  Reg p = Polynomial(v, f,
                     {0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195508f, -0.124055922f, 0.118881777f,
                      -0.116756387f, 0.0674659163f});
  Reg f2 = v.Mul(f, f);
  Reg r = v.Mul(v.Mul(std::move(p), f2), f);
  r = v.AddProduct(std::move(r), e, v.Const(-2.12194440e-4f));
  r = v.AddProduct(std::move(r), f2, v.Const(-0.5f));
  r = v.Add(std::move(f), r);
  r = v.AddProduct(std::move(r), e, v.Const(0.693359375f));
  r = v.Blend(v.Where(Compare::kEqual, x, v.Const(kInfinity)), x, std::move(r));
  r = v.Blend(v.Where(Compare::kEqual, x, v.Const(0.0f)), v.Const(-kInfinity), std::move(r));
  r = v.Blend(v.Where(Compare::kUnordered, x, x), x, std::move(r));
  return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), v.Bits(0x7fc00000u), std::move(r));
}

Reg EmitTanh(VectorCode& v, const Reg& x) {
  Reg large;
  {
    Reg a = v.Abs(x);
    a = v.Add(a, a);
    Reg e = EmitExp(v, std::move(a));
    Reg quotient = v.Div(v.Shared(2.0f), v.Add(std::move(e), v.Const(1.0f)));
    large = v.CopySign(v.Sub(v.Shared(1.0f), quotient), x);
  }
  Reg z = v.Mul(x, x);
  Reg p = Polynomial(v, z, {-0.333332837f, 0.133314908f, -0.0537434965f, 0.0206505861f, -0.00571704376f});
  Reg small = v.Fma(v.Mul(std::move(p), z), x, x);
  Reg a = v.Abs(x);
  return v.Blend(v.Where(Compare::kLess, a, v.Const(0.625f)), small, std::move(large));
}

Reg EmitSigmoid(VectorCode& v, const Reg& x) {
  Reg e = ExpOfMinusMagnitude(v, x);
  Reg sum = v.Add(e, v.Const(1.0f));
  Reg d = v.Div(v.Shared(1.0f), sum);
  Reg product = v.Mul(std::move(e), d);
  return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), product, std::move(d));
}

Reg EmitErf(VectorCode& v, const Reg& x) {
  Reg large;
  {
    Reg a = v.MinRaw(v.Abs(x), v.Const(4.1f));
    Reg q = Polynomial(v, a,
                       {-0.000174683402f, 1.12951493f, 0.633346915f, 0.108280078f, -0.0251194183f, 0.00417105947f,
                        -0.000434461836f, 2.10949784e-05f});
    a = {};
    Reg e = EmitExp(v, v.Negate(std::move(q)));
    large = v.CopySign(v.Sub(v.Shared(1.0f), e), x);
  }
  Reg z = v.Mul(x, x);
  Reg small = Polynomial(
      v, z, {0.128379166f, -0.376126349f, 0.112836942f, -0.0268592704f, 0.00520063424f, -0.000813743798f, 8.3452258e-05f});
  small = v.Fma(std::move(small), x, x);
  Reg a = v.Abs(x);
  Reg r = v.Blend(v.Where(Compare::kLess, a, v.Const(0.93f)), small, std::move(large));
  return v.Blend(v.Where(Compare::kUnordered, x, x), x, std::move(r));
}

Reg EmitSoftplus(VectorCode& v, const Reg& x) {
  // log(1 + y) with a first-order correction of the rounding of 1 + y.
  Reg y = ExpOfMinusMagnitude(v, x);
  Reg u = v.Add(y, v.Const(1.0f));
  Reg correction = v.Sub(std::move(y), v.Sub(u, v.Const(1.0f)));
  correction = v.Div(std::move(correction), u);
  Reg log = v.Add(EmitLog(v, u), correction);
  Reg positive = v.Max(x, v.Const(0.0f));
  return v.Add(std::move(positive), log);
}

Reg EmitExpm1(VectorCode& v, const Reg& x) {
  Reg near_zero;
  {
    Reg half = v.Mul(x, v.Const(0.5f));
    Reg t = EmitTanh(v, half);
    Reg rest = v.Sub(v.Shared(1.0f), t);
    near_zero = v.Div(v.Add(t, t), rest);
  }
  Reg far = v.Sub(EmitExp(v, x), v.Const(1.0f));
  Reg a = v.Mul(v.Abs(x), v.Const(10.0f));
  return v.Blend(v.Where(Compare::kLess, a, v.Const(7.0f)), near_zero, std::move(far));
}

}  // namespace mge::cpu
