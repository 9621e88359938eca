// SPDX-License-Identifier: Apache-2.0
// The instructions of elementwise functions: which one computes a function, and what it costs.
#pragma once

#include "mge/plugin/problems/elementwise.hpp"
#include "vec/tile.h"

namespace mge::cpu {

using Form = ElementwiseForm;
using Function = ElementwiseFunction;

constexpr TileOp TileOpOf(Function function) {
  return static_cast<TileOp>(static_cast<uint8_t>(TileOp::kAbs) + static_cast<uint8_t>(function));
}
static_assert(TileOpOf(Function::kXor) == TileOp::kXor);

// Returns whether the operator's results need no rounding to the operands' 16-bit type, because it selects a value or drops
// bits.
inline bool KeepsHalf(const Elementwise& e) {
  if (e.form == Form::kWhere || e.form == Form::kClip) return true;
  if (e.form != Form::kUnary && e.form != Form::kVariadic) return false;
  switch (e.function) {
    case Function::kAbs:
    case Function::kNeg:
    case Function::kSign:
    case Function::kRelu:
    case Function::kCeil:
    case Function::kFloor:
    case Function::kRound:
    case Function::kMax:
    case Function::kMin: return true;
    default: return false;
  }
}

// Returns one thread's time per element in nanoseconds, without memory accesses.
inline double TileOpNs(Isa isa, TileOp op, mge_dtype type) {
  double width = (isa == Isa::kAvx512 ? 1.0 : isa == Isa::kAvx2 ? 2.0 : 4.0) * (SizeOf(type) == 8 ? 2.0 : 1.0);
  const bool wide = type == MGE_DTYPE_F64;
  switch (op) {
    case TileOp::kExp:
    case TileOp::kLog:
    case TileOp::kSigmoid:
    case TileOp::kSwish: return (wide ? 0.5 : 0.25) * width;
    case TileOp::kTanh:
    case TileOp::kSin:
    case TileOp::kCos:
    case TileOp::kTan:
    case TileOp::kSoftplus:
    case TileOp::kElu:
    case TileOp::kCelu:
    case TileOp::kSelu:
    case TileOp::kMish: return (wide ? 1.0 : 0.5) * width;
    case TileOp::kErf:
    case TileOp::kGelu:
    case TileOp::kGeluTanh:
    case TileOp::kAsin:
    case TileOp::kAcos:
    case TileOp::kAtan:
    case TileOp::kSinh:
    case TileOp::kCosh:
    case TileOp::kAsinh:
    case TileOp::kAcosh:
    case TileOp::kAtanh: return wide ? 12.0 : 0.5 * width;
    case TileOp::kPow:
    case TileOp::kFmod:
    case TileOp::kMod: return 12.0;
    case TileOp::kDiv:
    case TileOp::kSqrt:
    case TileOp::kReciprocal: return IsInteger(type) ? 3.0 : 0.1 * width;
    default: return 0.04 * width;
  }
}

}  // namespace mge::cpu
