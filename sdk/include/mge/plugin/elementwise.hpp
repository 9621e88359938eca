// SPDX-License-Identifier: Apache-2.0
// The elementwise operators of ai.onnx and their functions. problems/elementwise.hpp reads nodes of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mge/plugin/elementwise_functions.hpp"

namespace mge {

// Returns the function's word, for example "gelu_tanh".
constexpr std::string_view NameOf(ElementwiseFunction function) {
#define MGE_FUNCTION(Name, name) #name,
  constexpr std::string_view kNames[] = {MGE_ELEMENTWISE_FUNCTIONS(MGE_FUNCTION)};
#undef MGE_FUNCTION
  return kNames[static_cast<size_t>(function)];
}

// The way in which an operator uses its function.
enum class ElementwiseForm : uint8_t {
  kUnary,     // f(x), with the parameters a and b
  kBinary,    // f(x, y)
  kVariadic,  // f(f(x0, x1), x2)...
  kMean,      // the sum of all inputs, divided by their number
  // Forms without a function:
  kWhere,
  kCast,  // to the output's type
  kClip,
  kCopy,
  kQuantize,    // QuantizeLinear (problems/quantize.hpp)
  kDequantize,  // DequantizeLinear
};

// An operator, and the attributes that are its parameters.
struct ElementwiseOp {
  const char* name;
  ElementwiseForm form;
  ElementwiseFunction function = ElementwiseFunction::kAbs;
  const char* a = "";
  const char* b = "";
};

namespace elementwise {
using Form = ElementwiseForm;
using F = ElementwiseFunction;
inline constexpr ElementwiseOp kElementwiseOps[] = {
    {"Abs", Form::kUnary, F::kAbs},
    {"Acos", Form::kUnary, F::kAcos},
    {"Acosh", Form::kUnary, F::kAcosh},
    {"Add", Form::kBinary, F::kAdd},
    {"And", Form::kBinary, F::kAnd},
    {"Asin", Form::kUnary, F::kAsin},
    {"Asinh", Form::kUnary, F::kAsinh},
    {"Atan", Form::kUnary, F::kAtan},
    {"Atanh", Form::kUnary, F::kAtanh},
    {"BitShift", Form::kBinary, F::kShiftRight},  // or kShiftLeft
    {"BitwiseAnd", Form::kBinary, F::kBitwiseAnd},
    {"BitwiseNot", Form::kUnary, F::kBitwiseNot},
    {"BitwiseOr", Form::kBinary, F::kBitwiseOr},
    {"BitwiseXor", Form::kBinary, F::kBitwiseXor},
    {"Cast", Form::kCast},
    {"CastLike", Form::kCast},
    {"Ceil", Form::kUnary, F::kCeil},
    {"Celu", Form::kUnary, F::kCelu, "alpha"},
    {"Clip", Form::kClip},
    {"Cos", Form::kUnary, F::kCos},
    {"Cosh", Form::kUnary, F::kCosh},
    {"DequantizeLinear", Form::kDequantize},
    {"Div", Form::kBinary, F::kDiv},
    {"Dropout", Form::kCopy},
    {"Elu", Form::kUnary, F::kElu, "alpha"},
    {"Equal", Form::kBinary, F::kEqual},
    {"Erf", Form::kUnary, F::kErf},
    {"Exp", Form::kUnary, F::kExp},
    {"Floor", Form::kUnary, F::kFloor},
    {"Gelu", Form::kUnary, F::kGelu},  // or kGeluTanh
    {"Greater", Form::kBinary, F::kGreater},
    {"GreaterOrEqual", Form::kBinary, F::kGreaterOrEqual},
    {"HardSigmoid", Form::kUnary, F::kHardSigmoid, "alpha", "beta"},
    {"HardSwish", Form::kUnary, F::kHardSwish},
    {"Identity", Form::kCopy},
    {"IsInf", Form::kUnary, F::kIsInf, "detect_positive", "detect_negative"},
    {"IsNaN", Form::kUnary, F::kIsNaN},
    {"LeakyRelu", Form::kUnary, F::kLeakyRelu, "alpha"},
    {"Less", Form::kBinary, F::kLess},
    {"LessOrEqual", Form::kBinary, F::kLessOrEqual},
    {"Log", Form::kUnary, F::kLog},
    {"Max", Form::kVariadic, F::kMax},
    {"Mean", Form::kMean, F::kAdd},
    {"Min", Form::kVariadic, F::kMin},
    {"Mish", Form::kUnary, F::kMish},
    {"Mod", Form::kBinary, F::kMod},  // or kFmod
    {"Mul", Form::kBinary, F::kMul},
    {"Neg", Form::kUnary, F::kNeg},
    {"Not", Form::kUnary, F::kNot},
    {"Or", Form::kBinary, F::kOr},
    {"PRelu", Form::kBinary, F::kPRelu},
    {"Pow", Form::kBinary, F::kPow},  // the exponent may have a type of its own
    {"QuantizeLinear", Form::kQuantize},
    {"Reciprocal", Form::kUnary, F::kReciprocal},
    {"Relu", Form::kUnary, F::kRelu},
    {"Round", Form::kUnary, F::kRound},
    {"Selu", Form::kUnary, F::kSelu, "alpha", "gamma"},
    {"Shrink", Form::kUnary, F::kShrink, "lambd", "bias"},
    {"Sigmoid", Form::kUnary, F::kSigmoid},
    {"Sign", Form::kUnary, F::kSign},
    {"Sin", Form::kUnary, F::kSin},
    {"Sinh", Form::kUnary, F::kSinh},
    {"Softplus", Form::kUnary, F::kSoftplus},
    {"Softsign", Form::kUnary, F::kSoftsign},
    {"Sqrt", Form::kUnary, F::kSqrt},
    {"Sub", Form::kBinary, F::kSub},
    {"Sum", Form::kVariadic, F::kAdd},
    {"Swish", Form::kUnary, F::kSwish, "alpha"},
    {"Tan", Form::kUnary, F::kTan},
    {"Tanh", Form::kUnary, F::kTanh},
    {"ThresholdedRelu", Form::kUnary, F::kThresholdedRelu, "alpha"},
    {"Where", Form::kWhere},
    {"Xor", Form::kBinary, F::kXor},
};

}  // namespace elementwise

using elementwise::kElementwiseOps;  // all elementwise operators, by name

}  // namespace mge
