// SPDX-License-Identifier: Apache-2.0
#include "jit/expressible.h"

#include "support/kernel.h"

namespace mge::cpu {
namespace {

bool IsFloat(mge_dtype t) { return t == MGE_DTYPE_F32 || IsHalf(t); }
bool IsByte(mge_dtype t) { return t == MGE_DTYPE_I8 || t == MGE_DTYPE_U8; }
bool IsTruth(mge_dtype t) { return t == MGE_DTYPE_BOOL; }

bool HasCastCode(mge_dtype from, mge_dtype to) {
  if (IsFloat(from)) return IsFloat(to) || IsTruth(to);
  return (IsTruth(from) || IsByte(from)) && IsFloat(to);
}

}  // namespace

bool IsFloatUnary(TileOp op) {
  switch (op) {
    case TileOp::kAbs:
    case TileOp::kNeg:
    case TileOp::kSign:
    case TileOp::kRelu:
    case TileOp::kCeil:
    case TileOp::kFloor:
    case TileOp::kRound:
    case TileOp::kSqrt:
    case TileOp::kReciprocal:
    case TileOp::kExp:
    case TileOp::kLog:
    case TileOp::kTanh:
    case TileOp::kSigmoid:
    case TileOp::kErf:
    case TileOp::kSoftplus:
    case TileOp::kSoftsign:
    case TileOp::kGelu:
    case TileOp::kGeluTanh:
    case TileOp::kMish:
    case TileOp::kHardSwish:
    case TileOp::kSquare:
    case TileOp::kCube:
    case TileOp::kPowHalf:
    case TileOp::kLeakyRelu:
    case TileOp::kElu:
    case TileOp::kCelu:
    case TileOp::kSelu:
    case TileOp::kHardSigmoid:
    case TileOp::kThresholdedRelu:
    case TileOp::kShrink:
    case TileOp::kSwish:
    case TileOp::kDivideBy:
    case TileOp::kIsNaN:
    case TileOp::kIsInf: return true;
    default: return false;
  }
}

bool IsComparison(TileOp op) {
  return op == TileOp::kEqual || op == TileOp::kGreater || op == TileOp::kGreaterOrEqual || op == TileOp::kLess ||
         op == TileOp::kLessOrEqual;
}

bool IsFloatBinary(TileOp op) {
  switch (op) {
    case TileOp::kAdd:
    case TileOp::kSub:
    case TileOp::kMul:
    case TileOp::kDiv:
    case TileOp::kMax:
    case TileOp::kMin:
    case TileOp::kPRelu: return true;
    default: return IsComparison(op);
  }
}

bool HasCode(const Chain& chain, const ChainStep& step) {
  auto type = [&](int value) { return value < 0 ? MGE_DTYPE_UNDEFINED : chain.values[static_cast<size_t>(value)].type; };
  const mge_dtype a = type(step.a), b = type(step.b), c = type(step.c), out = type(step.out);
  const bool floats = a == MGE_DTYPE_F32 && (step.b < 0 || b == MGE_DTYPE_F32);
  switch (step.op) {
    case TileOp::kCopy:
    case TileOp::kSplat: return a == out && (IsFloat(a) || IsTruth(a) || IsByte(a));
    case TileOp::kCast: return HasCastCode(a, out);
    case TileOp::kRoundTo: return a == MGE_DTYPE_F32;
    case TileOp::kWhere: return IsTruth(a) && b == MGE_DTYPE_F32 && c == MGE_DTYPE_F32;
    case TileOp::kQuantize: return IsByte(out);
    case TileOp::kDequantize: return IsByte(a);
    case TileOp::kNot:
    case TileOp::kAnd:
    case TileOp::kOr:
    case TileOp::kXor: return IsTruth(a);
    default: return floats && (step.b < 0 ? IsFloatUnary(step.op) : IsFloatBinary(step.op));
  }
}

int WeightOf(TileOp op) {
  switch (op) {
    case TileOp::kExp: return 26;
    case TileOp::kSigmoid:
    case TileOp::kSwish: return 34;
    case TileOp::kLog:
    case TileOp::kTanh: return 48;
    case TileOp::kErf:
    case TileOp::kGelu:
    case TileOp::kGeluTanh: return 64;
    case TileOp::kSoftplus: return 90;
    case TileOp::kElu:
    case TileOp::kCelu:
    case TileOp::kSelu: return 90;
    case TileOp::kMish: return 140;
    case TileOp::kQuantize:
    case TileOp::kRoundTo:
    case TileOp::kHardSwish:
    case TileOp::kShrink: return 9;
    default: return 3;
  }
}

}  // namespace mge::cpu
