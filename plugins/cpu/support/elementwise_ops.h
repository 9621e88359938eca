// SPDX-License-Identifier: Apache-2.0
// The elementwise operators of ONNX and their instructions. This is the only list: kernel rows and claims derive from it.
#pragma once

#include <string_view>

#include "vec/tile.h"

namespace mge::cpu {

// The form in which an operator becomes instructions.
enum class Form : uint8_t {
  kUnary,      // y = op(x); attributes p0, p1 are parameters
  kPredicate,  // like kUnary; y is bool
  kBinary,     // y = op(a, b)
  kCompare,    // like kBinary; y is bool
  kVariadic,   // y = op(op(a, b), c)...
  kMean,       // the sum of all inputs divided by their number
  kWhere,
  kCast,
  kClip,
  kCopy,
  kPow,
  kMod,
  kShift,
  kGelu,
  kIsInf,
  kQuantize,
  kDequantize,
};

// An operator and its instruction.
struct ElementwiseOp {
  const char* name;
  Form form;
  TileOp tile = TileOp::kNone;
  const char* p0 = "";  // attributes
  const char* p1 = "";
};

inline constexpr ElementwiseOp kElementwiseOps[] = {
    {"Abs", Form::kUnary, TileOp::kAbs},
    {"Acos", Form::kUnary, TileOp::kAcos},
    {"Acosh", Form::kUnary, TileOp::kAcosh},
    {"Add", Form::kBinary, TileOp::kAdd},
    {"And", Form::kBinary, TileOp::kAnd},
    {"Asin", Form::kUnary, TileOp::kAsin},
    {"Asinh", Form::kUnary, TileOp::kAsinh},
    {"Atan", Form::kUnary, TileOp::kAtan},
    {"Atanh", Form::kUnary, TileOp::kAtanh},
    {"BitShift", Form::kShift},
    {"BitwiseAnd", Form::kBinary, TileOp::kBitwiseAnd},
    {"BitwiseNot", Form::kUnary, TileOp::kBitwiseNot},
    {"BitwiseOr", Form::kBinary, TileOp::kBitwiseOr},
    {"BitwiseXor", Form::kBinary, TileOp::kBitwiseXor},
    {"Cast", Form::kCast},
    {"CastLike", Form::kCast},
    {"Ceil", Form::kUnary, TileOp::kCeil},
    {"Celu", Form::kUnary, TileOp::kCelu, "alpha"},
    {"Clip", Form::kClip},
    {"Cos", Form::kUnary, TileOp::kCos},
    {"Cosh", Form::kUnary, TileOp::kCosh},
    {"DequantizeLinear", Form::kDequantize},
    {"Div", Form::kBinary, TileOp::kDiv},
    {"Dropout", Form::kCopy},
    {"Elu", Form::kUnary, TileOp::kElu, "alpha"},
    {"Equal", Form::kCompare, TileOp::kEqual},
    {"Erf", Form::kUnary, TileOp::kErf},
    {"Exp", Form::kUnary, TileOp::kExp},
    {"Floor", Form::kUnary, TileOp::kFloor},
    {"Gelu", Form::kGelu},
    {"Greater", Form::kCompare, TileOp::kGreater},
    {"GreaterOrEqual", Form::kCompare, TileOp::kGreaterOrEqual},
    {"HardSigmoid", Form::kUnary, TileOp::kHardSigmoid, "alpha", "beta"},
    {"HardSwish", Form::kUnary, TileOp::kHardSwish},
    {"Identity", Form::kCopy},
    {"IsInf", Form::kIsInf},
    {"IsNaN", Form::kPredicate, TileOp::kIsNaN},
    {"LeakyRelu", Form::kUnary, TileOp::kLeakyRelu, "alpha"},
    {"Less", Form::kCompare, TileOp::kLess},
    {"LessOrEqual", Form::kCompare, TileOp::kLessOrEqual},
    {"Log", Form::kUnary, TileOp::kLog},
    {"Max", Form::kVariadic, TileOp::kMax},
    {"Mean", Form::kMean, TileOp::kAdd},
    {"Min", Form::kVariadic, TileOp::kMin},
    {"Mish", Form::kUnary, TileOp::kMish},
    {"Mod", Form::kMod},
    {"Mul", Form::kBinary, TileOp::kMul},
    {"Neg", Form::kUnary, TileOp::kNeg},
    {"Not", Form::kUnary, TileOp::kNot},
    {"Or", Form::kBinary, TileOp::kOr},
    {"PRelu", Form::kBinary, TileOp::kPRelu},
    {"Pow", Form::kPow},
    {"QuantizeLinear", Form::kQuantize},
    {"Reciprocal", Form::kUnary, TileOp::kReciprocal},
    {"Relu", Form::kUnary, TileOp::kRelu},
    {"Round", Form::kUnary, TileOp::kRound},
    {"Selu", Form::kUnary, TileOp::kSelu, "alpha", "gamma"},
    {"Shrink", Form::kUnary, TileOp::kShrink, "lambd", "bias"},
    {"Sigmoid", Form::kUnary, TileOp::kSigmoid},
    {"Sign", Form::kUnary, TileOp::kSign},
    {"Sin", Form::kUnary, TileOp::kSin},
    {"Sinh", Form::kUnary, TileOp::kSinh},
    {"Softplus", Form::kUnary, TileOp::kSoftplus},
    {"Softsign", Form::kUnary, TileOp::kSoftsign},
    {"Sqrt", Form::kUnary, TileOp::kSqrt},
    {"Sub", Form::kBinary, TileOp::kSub},
    {"Sum", Form::kVariadic, TileOp::kAdd},
    {"Swish", Form::kUnary, TileOp::kSwish, "alpha"},
    {"Tan", Form::kUnary, TileOp::kTan},
    {"Tanh", Form::kUnary, TileOp::kTanh},
    {"ThresholdedRelu", Form::kUnary, TileOp::kThresholdedRelu, "alpha"},
    {"Where", Form::kWhere},
    {"Xor", Form::kBinary, TileOp::kXor},
};

// Returns the row of an operator of ai.onnx, or null if it is not elementwise.
inline const ElementwiseOp* FindElementwise(std::string_view op, std::string_view domain) {
  if (!domain.empty()) return nullptr;
  for (const ElementwiseOp& row : kElementwiseOps) {
    if (op == row.name) return &row;
  }
  return nullptr;
}

// Returns whether the operator's results need no rounding to the operands' 16-bit type, because it selects a value or drops
// bits.
inline bool KeepsHalf(const ElementwiseOp& op) {
  if (op.form == Form::kWhere || op.form == Form::kClip) return true;
  switch (op.tile) {
    case TileOp::kAbs:
    case TileOp::kNeg:
    case TileOp::kSign:
    case TileOp::kRelu:
    case TileOp::kCeil:
    case TileOp::kFloor:
    case TileOp::kRound:
    case TileOp::kMax:
    case TileOp::kMin: return true;
    default: return false;
  }
}

// Returns one thread's time per element in nanoseconds, without memory accesses.
inline double TileOpNs(Isa isa, TileOp op, mge_dtype type) {
  double width = (isa == Isa::kAvx512 ? 1.0 : isa == Isa::kAvx2 ? 2.0 : 4.0) * (SizeOf(type) == 8 ? 2.0 : 1.0);
  switch (op) {
    case TileOp::kExp:
    case TileOp::kLog:
    case TileOp::kSigmoid:
    case TileOp::kSwish: return type == MGE_DTYPE_F64 ? 8.0 : 0.25 * width;
    case TileOp::kTanh:
    case TileOp::kErf:
    case TileOp::kGelu:
    case TileOp::kGeluTanh:
    case TileOp::kSoftplus:
    case TileOp::kElu:
    case TileOp::kCelu:
    case TileOp::kSelu:
    case TileOp::kMish: return type == MGE_DTYPE_F64 ? 12.0 : 0.5 * width;
    case TileOp::kSin:
    case TileOp::kCos:
    case TileOp::kTan:
    case TileOp::kAsin:
    case TileOp::kAcos:
    case TileOp::kAtan:
    case TileOp::kSinh:
    case TileOp::kCosh:
    case TileOp::kAsinh:
    case TileOp::kAcosh:
    case TileOp::kAtanh:
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
