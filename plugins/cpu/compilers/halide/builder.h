// SPDX-License-Identifier: Apache-2.0
// The operations of functions.h as expressions of Halide.
//
// Halide replaces a comparison's opposite by another comparison, which is wrong for NaN. Less() and Equal() therefore test for NaN
// themselves. Sums of integers are computed without a sign, because Halide assumes that signed ones do not overflow.
#pragma once

#include <Halide.h>

#include <map>

#include "compilers/compiler.h"
#include "compilers/half_bits.h"

namespace mge::jit {

class HalideBuilder {
 public:
  using Value = Halide::Expr;

  explicit HalideBuilder(const Halide::Var& x) : x_(x) {}

  Value Number(float x) { return Halide::Internal::FloatImm::make(Halide::Float(32), static_cast<double>(x)); }
  Value Integer(int32_t i) { return Halide::Internal::IntImm::make(Halide::Int(32), i); }
  Value Truth(bool t) { return Halide::Internal::make_bool(t); }

  Value Add(const Value& a, const Value& b) { return a + b; }
  Value Sub(const Value& a, const Value& b) { return a - b; }
  Value Mul(const Value& a, const Value& b) { return a * b; }
  Value Div(const Value& a, const Value& b) { return a / b; }
  Value Fma(const Value& a, const Value& b, const Value& c) { return a * b + c; }
  Value Sqrt(const Value& a) { return Halide::sqrt(a); }
  Value Floor(const Value& a) { return Halide::floor(a); }
  Value Ceil(const Value& a) { return Halide::ceil(a); }

  Value Less(const Value& a, const Value& b) { return a < b && IsNumber(a) && IsNumber(b); }
  Value Equal(const Value& a, const Value& b) { return a == b && IsNumber(a) && IsNumber(b); }
  Value IsNaN(const Value& a) { return Halide::is_nan(a); }
  Value And(const Value& a, const Value& b) { return a && b; }
  Value Or(const Value& a, const Value& b) { return a || b; }
  Value Xor(const Value& a, const Value& b) { return (a && !b) || (!a && b); }
  Value Not(const Value& a) { return !a; }
  Value Select(const Value& t, const Value& yes, const Value& no) { return Halide::select(t, yes, no); }

  Value IntAdd(const Value& a, const Value& b) { return Signed(Unsigned(a) + Unsigned(b)); }
  Value IntSub(const Value& a, const Value& b) { return Signed(Unsigned(a) - Unsigned(b)); }
  Value IntAnd(const Value& a, const Value& b) { return a & b; }
  Value IntOr(const Value& a, const Value& b) { return a | b; }
  Value IntXor(const Value& a, const Value& b) { return a ^ b; }
  Value ShiftLeft(const Value& a, int n) { return Signed(Unsigned(a) << n); }
  Value ShiftRight(const Value& a, int n) { return Signed(Unsigned(a) >> n); }
  Value ShiftRightArithmetic(const Value& a, int n) { return a >> n; }
  Value Bits(const Value& a) { return Halide::reinterpret<int32_t>(a); }
  Value FloatOfBits(const Value& a) { return Halide::reinterpret<float>(a); }
  Value ToFloat(const Value& a) { return Halide::cast<float>(a); }
  Value ToInt(const Value& a) { return Halide::cast<int32_t>(a); }
  Value RoundToHalf(const Value& a) { return FloatOfHalfBits(*this, HalfBits(*this, a)); }

  Value Load(const mge_jit_value& v);
  // Converts a value to the elements of its place.
  Value Packed(const mge_jit_value& v, const Value& value);

  // The buffers of the operands, by their places.
  const std::map<int, Halide::ImageParam>& operands() const { return operands_; }
  static Halide::Type ElementOf(uint32_t type);

 private:
  static Value IsNumber(const Value& a) { return !Halide::is_nan(a); }
  static Value Unsigned(const Value& a) { return Halide::cast<uint32_t>(a); }
  static Value Signed(const Value& a) { return Halide::cast<int32_t>(a); }

  const Halide::Var& x_;
  std::map<int, Halide::ImageParam> operands_;
};

}  // namespace mge::jit
