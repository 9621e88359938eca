// SPDX-License-Identifier: Apache-2.0
#include "jit/step_code.h"

#include <limits>

#include "jit/vector_math.h"

namespace mge::cpu {
namespace {

using Rounding = VectorCode::Rounding;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns max(0, min(1, x)).
Reg ClampToOne(VectorCode& v, const Reg& x) {
  Reg low = v.MinRaw(v.Shared(1.0f), x);  // in this order NaN stays NaN
  return v.MaxRaw(v.Shared(0.0f), low);
}

Reg EmitSign(VectorCode& v, const Reg& x) {
  Reg r = v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), v.Const(-1.0f), x);
  return v.Blend(v.Where(Compare::kGreater, x, v.Const(0.0f)), v.Const(1.0f), std::move(r));
}

Reg EmitGelu(VectorCode& v, const Reg& x) {
  Reg erf;
  {
    Reg scaled = v.Mul(x, v.Const(0.707106781f));
    erf = EmitErf(v, scaled);
  }
  erf = v.Add(std::move(erf), v.Const(1.0f));
  return v.Mul(v.Mul(x, v.Const(0.5f)), erf);
}

Reg EmitGeluTanh(VectorCode& v, const Reg& x) {
  Reg cube = v.Mul(v.Mul(v.Mul(x, v.Const(0.044715f)), x), x);
  Reg inner = v.Mul(v.Add(std::move(cube), x), v.Const(0.797884561f));
  Reg t = EmitTanh(v, inner);
  t = v.Add(std::move(t), v.Const(1.0f));
  return v.Mul(v.Mul(x, v.Const(0.5f)), t);
}

Reg EmitPowHalf(VectorCode& v, const Reg& x) {
  Reg root = v.Add(v.Sqrt(x), v.Const(0.0f));
  Reg negated = v.Negate(x);
  return v.Blend(v.Where(Compare::kEqual, x, v.Const(-kInfinity)), negated, std::move(root));
}

Reg EmitHardSwish(VectorCode& v, const Reg& x) {
  Reg inner = v.Add(v.Div(x, v.Const(6.0f)), v.Const(0.5f));
  Reg gate = ClampToOne(v, inner);
  return v.Mul(std::move(gate), x);
}

Reg EmitShrink(VectorCode& v, const Reg& x, float lambd, float bias) {
  Reg r = v.Load(0.0f);
  {
    Reg lower = v.Sub(x, v.Const(bias));
    r = v.Blend(v.Where(Compare::kGreater, x, v.Const(lambd)), lower, std::move(r));
  }
  Reg higher = v.Add(x, v.Const(bias));
  return v.Blend(v.Where(Compare::kLess, x, v.Const(-lambd)), higher, std::move(r));
}

// Returns x where `keeps` compares x with 0, and elsewhere alpha * expm1(x / beta).
Reg EmitElu(VectorCode& v, const Reg& x, float alpha, float beta) {
  Reg e;
  if (beta == 1) {
    e = EmitExpm1(v, x);
  } else {
    Reg scaled = v.Div(x, v.Const(beta));
    e = EmitExpm1(v, scaled);
  }
  return v.Mul(std::move(e), v.Const(alpha));
}

Reg EmitSwish(VectorCode& v, const Reg& x, float alpha) {
  if (alpha == 1) return v.Mul(EmitSigmoid(v, x), x);
  Reg scaled = v.Mul(x, v.Const(alpha));
  return v.Mul(EmitSigmoid(v, scaled), x);
}

Reg EmitIsInf(VectorCode& v, const Reg& x, bool positive, bool negative) {
  if (!positive && !negative) return v.Load(0.0f);
  if (positive && negative) {
    Reg a = v.Abs(x);
    return v.TruthOf(v.Where(Compare::kEqual, a, v.Const(kInfinity)));
  }
  return v.TruthOf(v.Where(Compare::kEqual, x, v.Const(positive ? kInfinity : -kInfinity)));
}

Reg EmitActivation(VectorCode& v, TileOp op, const Reg& x, float a, float b) {
  switch (op) {
    case TileOp::kLeakyRelu: {
      Reg low = v.Mul(x, v.Const(a));
      return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), low, x);
    }
    case TileOp::kElu: {
      Reg low = EmitElu(v, x, a, 1);
      return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), low, x);
    }
    case TileOp::kCelu: {
      Reg low = EmitElu(v, x, a, a);
      return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), low, x);
    }
    case TileOp::kSelu: {
      Reg low = EmitElu(v, x, a, 1);
      low = v.Blend(v.Where(Compare::kGreater, x, v.Const(0.0f)), x, std::move(low));
      return v.Mul(std::move(low), v.Const(b));
    }
    case TileOp::kHardSigmoid: {
      Reg inner = v.Add(v.Mul(x, v.Const(a)), v.Const(b));
      return ClampToOne(v, inner);
    }
    case TileOp::kThresholdedRelu: return v.Blend(v.Where(Compare::kGreater, x, v.Const(a)), x, v.Load(0.0f));
    case TileOp::kShrink: return EmitShrink(v, x, a, b);
    case TileOp::kSwish: return EmitSwish(v, x, a);
    case TileOp::kMish: {
      Reg s = EmitSoftplus(v, x);
      return v.Mul(EmitTanh(v, s), x);
    }
    default: return {};
  }
}

}  // namespace

Reg EmitUnary(VectorCode& v, TileOp op, Reg x, const float* params) {
  switch (op) {
    case TileOp::kAbs: return v.Abs(std::move(x));
    case TileOp::kNeg: return v.Negate(std::move(x));
    case TileOp::kSign: return EmitSign(v, x);
    case TileOp::kRelu: {  // max(0, x) keeps NaN; adding 0 makes -0 to 0
      Reg r = v.MaxRaw(v.Shared(0.0f), x);
      return v.Add(std::move(r), v.Const(0.0f));
    }
    case TileOp::kCeil: return v.Round(std::move(x), Rounding::kUp);
    case TileOp::kFloor: return v.Round(std::move(x), Rounding::kDown);
    case TileOp::kRound: return v.Round(std::move(x), Rounding::kEven);
    case TileOp::kSqrt: return v.Sqrt(std::move(x));
    case TileOp::kReciprocal: return v.Div(v.Shared(1.0f), x);
    case TileOp::kExp: return EmitExp(v, x);
    case TileOp::kLog: return EmitLog(v, x);
    case TileOp::kTanh: return EmitTanh(v, x);
    case TileOp::kSigmoid: return EmitSigmoid(v, x);
    case TileOp::kErf: return EmitErf(v, x);
    case TileOp::kSoftplus: return EmitSoftplus(v, x);
    case TileOp::kSoftsign: {
      Reg d = v.Add(v.Abs(x), v.Const(1.0f));
      return v.Div(std::move(x), d);
    }
    case TileOp::kGelu: return EmitGelu(v, x);
    case TileOp::kGeluTanh: return EmitGeluTanh(v, x);
    case TileOp::kHardSwish: return EmitHardSwish(v, x);
    case TileOp::kSquare: return v.Mul(x, x);
    case TileOp::kCube: return v.Mul(v.Mul(x, x), x);
    case TileOp::kPowHalf: return EmitPowHalf(v, x);
    case TileOp::kDivideBy: return v.Div(std::move(x), v.Const(params[0]));
    case TileOp::kIsNaN: return v.TruthOf(v.Where(Compare::kUnordered, x, x));
    case TileOp::kIsInf: return EmitIsInf(v, x, params[0] != 0, params[1] != 0);
    default: return EmitActivation(v, op, x, params[0], params[1]);
  }
}

Reg EmitBinary(VectorCode& v, TileOp op, Reg x, const Arg& y) {
  switch (op) {
    case TileOp::kAdd: return v.Add(std::move(x), y);
    case TileOp::kSub: return v.Sub(std::move(x), y);
    case TileOp::kMul: return v.Mul(std::move(x), y);
    case TileOp::kDiv: return v.Div(std::move(x), y);
    case TileOp::kMax: return v.Max(x, y);
    case TileOp::kMin: return v.Min(x, y);
    case TileOp::kPRelu: {
      Reg low = v.Mul(x, y);
      return v.Blend(v.Where(Compare::kLess, x, v.Const(0.0f)), low, x);
    }
    case TileOp::kEqual: return v.TruthOf(v.Where(Compare::kEqual, x, y));
    case TileOp::kGreater: return v.TruthOf(v.Where(Compare::kGreater, x, y));
    case TileOp::kGreaterOrEqual: return v.TruthOf(v.Where(Compare::kGreaterOrEqual, x, y));
    case TileOp::kLess: return v.TruthOf(v.Where(Compare::kLess, x, y));
    case TileOp::kLessOrEqual: return v.TruthOf(v.Where(Compare::kLessOrEqual, x, y));
    default: return {};
  }
}

Reg EmitBfloat16(VectorCode& v, const Reg& x) {
  Reg rounded = v.And(v.ShiftRight(x, 16), v.Bits(1));
  rounded = v.AddInt(v.AddInt(std::move(rounded), x), v.Bits(0x7fff));
  rounded = v.ShiftRight(std::move(rounded), 16);
  Reg quiet = v.Or(v.ShiftRight(x, 16), v.Bits(0x40));
  return v.Blend(v.Where(Compare::kUnordered, x, x), quiet, std::move(rounded));
}

Reg EmitRound(VectorCode& v, mge_dtype half, Reg x) {
  if (half == MGE_DTYPE_BF16) return v.ShiftLeft(EmitBfloat16(v, x), 16);
  return v.RoundToHalf(std::move(x));
}

Reg EmitQuantize(VectorCode& v, Reg scaled, const Reg* zero, bool is_signed) {
  const int low = is_signed ? -128 : 0, high = low + 255;
  if (!zero) {  // NaN gives the lowest integer: the second operand
    Reg x = v.MaxRaw(std::move(scaled), v.Const(static_cast<float>(low)));
    return v.ToNearestInt(v.MinRaw(std::move(x), v.Const(static_cast<float>(high))));
  }
  Reg x;
  {
    Reg limit = v.Load(v.Bits(static_cast<uint32_t>(low)));
    limit = v.ToFloat(v.SubInt(std::move(limit), *zero));
    x = v.MaxRaw(std::move(scaled), limit);
  }
  Reg limit = v.Load(v.Bits(static_cast<uint32_t>(high)));
  limit = v.ToFloat(v.SubInt(std::move(limit), *zero));
  x = v.MinRaw(std::move(x), limit);
  return v.AddInt(v.ToNearestInt(std::move(x)), *zero);
}

Reg EmitDequantize(VectorCode& v, Reg x, const Arg& scale, const Arg* zero) {
  if (zero) x = v.SubInt(std::move(x), *zero);
  return v.Mul(v.ToFloat(std::move(x)), scale);
}

}  // namespace mge::cpu
