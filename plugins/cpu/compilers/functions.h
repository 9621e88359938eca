// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of float32 in terms of a few operations, for compilers that build expressions. The operations and the
// coefficients are those of vec/math.h and vec/tile_unary.cc.
//
// B, a builder of expressions, has
//   Value                                          a float, an integer of 32 bits or a truth value of each element
//   Number(x) Integer(i) Truth(t)                  constants
//   Add Sub Mul Div Fma(a, b, c) Sqrt Floor Ceil   floats; Fma is a * b + c, rounded once or twice
//   Less Equal IsNaN                               floats to truth values; Less and Equal are false for NaN
//   And Or Xor Not                                 truth values
//   Select(truth, yes, no)
//   IntAdd IntSub IntAnd IntOr IntXor ShiftLeft(x, n) ShiftRight(x, n) ShiftRightArithmetic(x, n)   sums wrap around
//   Bits FloatOfBits ToFloat ToInt                 ToInt: of whole numbers in range, otherwise any integer
//   RoundToHalf(x)                                 rounds to float16
#pragma once

#include <initializer_list>
#include <limits>

#include "jit/chain.h"

namespace mge::jit {

using cpu::TileOp;

template <typename B>
class Functions {
 public:
  using V = typename B::Value;

  explicit Functions(B* builder) : b(*builder) {}

  // Returns op(x). `params` are those of the step.
  V Unary(TileOp op, const V& x, const float* params) const {
    switch (op) {
      case TileOp::kAbs: return Abs(x);
      case TileOp::kNeg: return b.FloatOfBits(b.IntXor(b.Bits(x), SignBit()));
      case TileOp::kSign: return b.Select(Greater(x, N(0)), N(1), b.Select(b.Less(x, N(0)), N(-1), x));
      case TileOp::kRelu: return Max(x, N(0));
      case TileOp::kCeil: return b.Ceil(x);
      case TileOp::kFloor: return b.Floor(x);
      case TileOp::kRound: return RoundEven(x);
      case TileOp::kSqrt: return b.Sqrt(x);
      case TileOp::kReciprocal: return b.Div(N(1), x);
      case TileOp::kExp: return Exp(x);
      case TileOp::kLog: return Log(x);
      case TileOp::kTanh: return Tanh(x);
      case TileOp::kSigmoid: return Sigmoid(x);
      case TileOp::kErf: return Erf(x);
      case TileOp::kSoftplus: return Softplus(x);
      case TileOp::kSoftsign: return b.Div(x, b.Add(N(1), Abs(x)));
      case TileOp::kGelu: return b.Mul(b.Mul(N(0.5f), x), b.Add(N(1), Erf(b.Mul(x, N(0.707106781f)))));
      case TileOp::kGeluTanh: return GeluTanh(x);
      case TileOp::kMish: return b.Mul(x, Tanh(Softplus(x)));
      case TileOp::kHardSwish: return b.Mul(x, ClampToOne(b.Add(b.Div(x, N(6)), N(0.5f))));
      case TileOp::kSquare: return b.Mul(x, x);
      case TileOp::kCube: return b.Mul(b.Mul(x, x), x);
      case TileOp::kPowHalf: return b.Select(b.Equal(x, N(-kInfinity)), N(kInfinity), b.Add(b.Sqrt(x), N(0)));
      case TileOp::kDivideBy: return b.Div(x, N(params[0]));
      case TileOp::kIsNaN: return b.IsNaN(x);
      case TileOp::kIsInf: return IsInf(x, params[0] != 0, params[1] != 0);
      default: return Activation(op, x, params[0], params[1]);
    }
  }

  // Returns op(x, y) for float32.
  V Binary(TileOp op, const V& x, const V& y) const {
    switch (op) {
      case TileOp::kAdd: return b.Add(x, y);
      case TileOp::kSub: return b.Sub(x, y);
      case TileOp::kMul: return b.Mul(x, y);
      case TileOp::kDiv: return b.Div(x, y);
      case TileOp::kMax: return Max(x, y);
      case TileOp::kMin: return b.Select(b.Or(b.IsNaN(x), b.Less(x, y)), x, y);
      case TileOp::kPRelu: return b.Select(b.Less(x, N(0)), b.Mul(x, y), x);
      case TileOp::kEqual: return b.Equal(x, y);
      case TileOp::kGreater: return Greater(x, y);
      case TileOp::kGreaterOrEqual: return b.Or(Greater(x, y), b.Equal(x, y));
      case TileOp::kLess: return b.Less(x, y);
      default: return b.Or(b.Less(x, y), b.Equal(x, y));  // kLessOrEqual
    }
  }

  // Returns the bits of x rounded to bfloat16, in the lower half of an integer.
  V Bfloat16Bits(const V& x) const {
    const V bits = b.Bits(x), top = b.ShiftRight(bits, 16);
    const V rounded = b.ShiftRight(b.IntAdd(b.IntAdd(b.IntAnd(top, I(1)), bits), I(0x7fff)), 16);
    return b.Select(b.IsNaN(x), b.IntOr(top, I(0x40)), rounded);
  }

  V RoundTo(mge_dtype half, const V& x) const {
    if (half == MGE_DTYPE_F16) return b.RoundToHalf(x);
    return b.FloatOfBits(b.ShiftLeft(Bfloat16Bits(x), 16));
  }

  // Returns round(x) + zero as an integer between `low` and low + 255. NaN gives the lowest integer.
  V Quantize(const V& x, const V* zero, int low) const {
    const V z = zero ? *zero : I(0);
    const V least = b.ToFloat(b.IntSub(I(low), z)), most = b.ToFloat(b.IntSub(I(low + 255), z));
    const V above = b.Select(b.Less(least, x), x, least);
    return b.IntAdd(b.ToInt(RoundEven(b.Select(b.Less(above, most), above, most))), z);
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kMinNormal = std::numeric_limits<float>::min();

  V N(float x) const { return b.Number(x); }
  V I(int32_t i) const { return b.Integer(i); }
  V SignBit() const { return I(std::numeric_limits<int32_t>::min()); }
  V Greater(const V& x, const V& y) const { return b.Less(y, x); }
  V Abs(const V& x) const { return b.FloatOfBits(b.IntAnd(b.Bits(x), I(0x7fffffff))); }
  V CopySign(const V& magnitude, const V& sign) const {
    const V rest = b.IntAnd(b.Bits(magnitude), I(0x7fffffff));
    return b.FloatOfBits(b.IntOr(rest, b.IntAnd(b.Bits(sign), SignBit())));
  }
  V Max(const V& x, const V& y) const { return b.Select(b.Or(b.IsNaN(x), Greater(x, y)), x, y); }
  V KeepNaN(const V& x, const V& result) const { return b.Select(b.IsNaN(x), x, result); }
  V ClampToOne(const V& x) const { return KeepNaN(x, b.Select(b.Less(x, N(1)), b.Select(Greater(x, N(0)), x, N(0)), N(1))); }

  // Rounds to whole numbers: adding and subtracting 2^23 drops the fraction.
  V RoundEven(const V& x) const {
    constexpr float kFirstWhole = 8388608;  // this and all larger floats are whole
    const V a = Abs(x);
    const V whole = b.Sub(b.Add(a, N(kFirstWhole)), N(kFirstWhole));
    return b.Select(b.Less(a, N(kFirstWhole)), CopySign(whole, x), x);
  }

  // Evaluates a polynomial by Horner's rule, lowest coefficient first.
  V Polynomial(const V& x, std::initializer_list<float> c) const {
    const float* next = c.end() - 1;
    V r = N(*next);
    while (next != c.begin()) r = b.Fma(r, x, N(*--next));
    return r;
  }

  V Exp(const V& x) const {
    const V above = b.Select(b.Less(x, N(-106)), N(-106), x);
    const V clamped = b.Select(Greater(above, N(92)), N(92), above);
    const V n = RoundEven(b.Mul(clamped, N(1.44269504f)));
    V r = b.Fma(n, N(-0.693359375f), clamped);
    r = b.Fma(n, N(2.12194440e-4f), r);
    const V q = Polynomial(r, {0.5f, 0.166665182f, 0.041666206f, 0.00836890843f, 0.0013950523f});
    const V mantissa = b.Add(b.Fma(q, b.Mul(r, r), r), N(1));
    // 2^n as two factors, because it may be subnormal.
    const V whole = b.ToInt(n), half = b.ShiftRightArithmetic(whole, 1), rest = b.IntSub(whole, half);
    return KeepNaN(x, b.Mul(b.Mul(mantissa, PowerOfTwo(half)), PowerOfTwo(rest)));
  }
  V PowerOfTwo(const V& n) const { return b.FloatOfBits(b.ShiftLeft(b.IntAdd(n, I(127)), 23)); }

  V Log(const V& x) const {
    const V is_tiny = b.Less(x, N(kMinNormal));
    const V normal = b.Select(is_tiny, b.Mul(x, N(8388608.0f)), x);
    const V shifted = b.IntSub(b.Bits(normal), I(0x3f3504f3));  // exponents begin at sqrt(1/2)
    const V exponent = b.IntSub(b.ShiftRightArithmetic(shifted, 23), b.Select(is_tiny, I(23), I(0)));
    const V e = b.ToFloat(exponent);
    const V m = b.FloatOfBits(b.IntAdd(b.IntAnd(shifted, I(0x007fffff)), I(0x3f3504f3)));
    const V f = b.Sub(m, N(1)), square = b.Mul(f, f);
    const V p = Polynomial(f, {0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195508f, -0.124055922f,
                               0.118881777f, -0.116756387f, 0.0674659163f});
    V r = b.Mul(b.Mul(p, square), f);
    r = b.Fma(e, N(-2.12194440e-4f), r);
    r = b.Fma(square, N(-0.5f), r);
    r = b.Fma(e, N(0.693359375f), b.Add(f, r));
    r = b.Select(b.Equal(x, N(kInfinity)), x, r);
    r = b.Select(b.Equal(x, N(0)), N(-kInfinity), r);
    return b.Select(b.Less(x, N(0)), b.FloatOfBits(I(0x7fc00000)), KeepNaN(x, r));
  }

  V Tanh(const V& x) const {
    const V a = Abs(x), z = b.Mul(x, x);
    const V p = Polynomial(z, {-0.333332837f, 0.133314908f, -0.0537434965f, 0.0206505861f, -0.00571704376f});
    const V small = b.Fma(b.Mul(p, z), x, x);
    const V large = b.Sub(N(1), b.Div(N(2), b.Add(Exp(b.Add(a, a)), N(1))));
    return KeepNaN(x, b.Select(b.Less(a, N(0.625f)), small, CopySign(large, x)));
  }

  V ExpOfMinusMagnitude(const V& x) const { return Exp(b.FloatOfBits(b.IntOr(b.Bits(x), SignBit()))); }

  V Sigmoid(const V& x) const {
    const V e = ExpOfMinusMagnitude(x), d = b.Div(N(1), b.Add(N(1), e));
    return KeepNaN(x, b.Select(b.Less(x, N(0)), b.Mul(e, d), d));
  }

  V Erf(const V& x) const {
    const V small = b.Fma(Polynomial(b.Mul(x, x), {0.128379166f, -0.376126349f, 0.112836942f, -0.0268592704f, 0.00520063424f,
                                                   -0.000813743798f, 8.3452258e-05f}),
                          x, x);
    const V magnitude = Abs(x), a = b.Select(b.Less(magnitude, N(4.1f)), magnitude, N(4.1f));
    const V q = Polynomial(a, {-0.000174683402f, 1.12951493f, 0.633346915f, 0.108280078f, -0.0251194183f, 0.00417105947f,
                               -0.000434461836f, 2.10949784e-05f});
    const V large = CopySign(b.Sub(N(1), Exp(b.Sub(N(0), q))), x);
    return KeepNaN(x, b.Select(b.Less(magnitude, N(0.93f)), small, large));
  }

  V Softplus(const V& x) const {  // log(1 + y) with a first-order correction of the rounding of 1 + y
    const V y = ExpOfMinusMagnitude(x), u = b.Add(N(1), y);
    const V log = b.Add(Log(u), b.Div(b.Sub(y, b.Sub(u, N(1))), u));
    return b.Add(Max(x, N(0)), log);
  }

  V Expm1(const V& x) const {
    const V t = Tanh(b.Mul(x, N(0.5f)));  // e^x - 1 = 2 t / (1 - t)
    const V near_zero = b.Div(b.Add(t, t), b.Sub(N(1), t));
    return b.Select(b.Less(b.Mul(Abs(x), N(10)), N(7)), near_zero, b.Sub(Exp(x), N(1)));
  }

  V GeluTanh(const V& x) const {
    const V cube = b.Mul(b.Mul(b.Mul(N(0.044715f), x), x), x);
    return b.Mul(b.Mul(N(0.5f), x), b.Add(N(1), Tanh(b.Mul(N(0.797884561f), b.Add(x, cube)))));
  }

  V IsInf(const V& x, bool positive, bool negative) const {
    if (positive && negative) return b.Equal(Abs(x), N(kInfinity));
    if (positive || negative) return b.Equal(x, N(positive ? kInfinity : -kInfinity));
    return b.Truth(false);
  }

  V Activation(TileOp op, const V& x, float alpha, float beta) const {
    const V a = N(alpha);
    switch (op) {
      case TileOp::kLeakyRelu: return b.Select(b.Less(x, N(0)), b.Mul(x, a), x);
      case TileOp::kElu: return b.Select(b.Less(x, N(0)), b.Mul(a, Expm1(x)), x);
      case TileOp::kCelu: return b.Select(b.Less(x, N(0)), b.Mul(a, Expm1(b.Div(x, a))), x);
      case TileOp::kSelu: return b.Mul(N(beta), b.Select(Greater(x, N(0)), x, b.Mul(a, Expm1(x))));
      case TileOp::kHardSigmoid: return ClampToOne(b.Add(b.Mul(a, x), N(beta)));
      case TileOp::kThresholdedRelu: return b.Select(Greater(x, a), x, N(0));
      case TileOp::kShrink:
        return b.Select(b.Less(x, N(-alpha)), b.Add(x, N(beta)), b.Select(Greater(x, a), b.Sub(x, N(beta)), N(0)));
      default: return b.Mul(x, Sigmoid(b.Mul(a, x)));  // kSwish
    }
  }

  B& b;
};

}  // namespace mge::jit
