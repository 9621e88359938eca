// SPDX-License-Identifier: Apache-2.0
// The elementwise operators of ONNX and their kernels: the only list, used by rows and claims.
#pragma once

#include <cstdint>
#include <string_view>

namespace mge::gpu {

// The form in which an operator uses its kernel.
enum class Form : uint8_t {
  kUnary,     // y = f(x); attributes p, q are parameters a, b
  kIsInf,     // like kUnary, with integer attributes
  kBinary,    // z = f(x, y), also comparisons
  kVariadic,  // f(f(a, b), c)...
  kMean,      // the sum of all inputs divided by their number
  kMod,
  kShift,
  kGelu,
  kPow,
  kWhere,
  kCast,
  kClip,
  kCopy,
  kQuantize,  // and kDequantize: y = f(x, scale, zero point)
  kDequantize,
};

// An operator and the kernel that computes it.
struct ElementwiseOp {
  const char* name;
  Form form;
  const char* kernel = "";
  const char* p = "";  // attributes
  const char* q = "";
};

inline constexpr ElementwiseOp kElementwiseOps[] = {
    {"Abs", Form::kUnary, "abs"},
    {"Acos", Form::kUnary, "acos"},
    {"Acosh", Form::kUnary, "acosh"},
    {"Add", Form::kBinary, "add"},
    {"And", Form::kBinary, "and"},
    {"Asin", Form::kUnary, "asin"},
    {"Asinh", Form::kUnary, "asinh"},
    {"Atan", Form::kUnary, "atan"},
    {"Atanh", Form::kUnary, "atanh"},
    {"BitShift", Form::kShift},
    {"BitwiseAnd", Form::kBinary, "bitwise_and"},
    {"BitwiseNot", Form::kUnary, "bitwise_not"},
    {"BitwiseOr", Form::kBinary, "bitwise_or"},
    {"BitwiseXor", Form::kBinary, "bitwise_xor"},
    {"Cast", Form::kCast},
    {"CastLike", Form::kCast},
    {"Ceil", Form::kUnary, "ceil"},
    {"Celu", Form::kUnary, "celu", "alpha"},
    {"Clip", Form::kClip, "clip"},
    {"Cos", Form::kUnary, "cos"},
    {"Cosh", Form::kUnary, "cosh"},
    {"DequantizeLinear", Form::kDequantize, "dequantize_to"},
    {"Div", Form::kBinary, "div"},
    {"Dropout", Form::kCopy},
    {"Elu", Form::kUnary, "elu", "alpha"},
    {"Equal", Form::kBinary, "equal"},
    {"Erf", Form::kUnary, "erf"},
    {"Exp", Form::kUnary, "exp"},
    {"Floor", Form::kUnary, "floor"},
    {"Gelu", Form::kGelu},
    {"Greater", Form::kBinary, "greater"},
    {"GreaterOrEqual", Form::kBinary, "greater_or_equal"},
    {"HardSigmoid", Form::kUnary, "hard_sigmoid", "alpha", "beta"},
    {"HardSwish", Form::kUnary, "hard_swish"},
    {"Identity", Form::kCopy},
    {"IsInf", Form::kIsInf, "is_inf"},
    {"IsNaN", Form::kUnary, "is_nan"},
    {"LeakyRelu", Form::kUnary, "leaky_relu", "alpha"},
    {"Less", Form::kBinary, "less"},
    {"LessOrEqual", Form::kBinary, "less_or_equal"},
    {"Log", Form::kUnary, "log"},
    {"Max", Form::kVariadic, "max"},
    {"Mean", Form::kMean, "add"},
    {"Min", Form::kVariadic, "min"},
    {"Mish", Form::kUnary, "mish"},
    {"Mod", Form::kMod},
    {"Mul", Form::kBinary, "mul"},
    {"Neg", Form::kUnary, "neg"},
    {"Not", Form::kUnary, "not"},
    {"Or", Form::kBinary, "or"},
    {"PRelu", Form::kBinary, "prelu"},
    {"Pow", Form::kPow, "pow"},
    {"QuantizeLinear", Form::kQuantize, "quantize_to"},
    {"Reciprocal", Form::kUnary, "reciprocal"},
    {"Relu", Form::kUnary, "relu"},
    {"Round", Form::kUnary, "round"},
    {"Selu", Form::kUnary, "selu", "alpha", "gamma"},
    {"Shrink", Form::kUnary, "shrink", "lambd", "bias"},
    {"Sigmoid", Form::kUnary, "sigmoid"},
    {"Sign", Form::kUnary, "sign"},
    {"Sin", Form::kUnary, "sin"},
    {"Sinh", Form::kUnary, "sinh"},
    {"Softplus", Form::kUnary, "softplus"},
    {"Softsign", Form::kUnary, "softsign"},
    {"Sqrt", Form::kUnary, "sqrt"},
    {"Sub", Form::kBinary, "sub"},
    {"Sum", Form::kVariadic, "add"},
    {"Swish", Form::kUnary, "swish", "alpha"},
    {"Tan", Form::kUnary, "tan"},
    {"Tanh", Form::kUnary, "tanh"},
    {"ThresholdedRelu", Form::kUnary, "thresholded_relu", "alpha"},
    {"Where", Form::kWhere},
    {"Xor", Form::kBinary, "xor"},
};

// Returns the row of an operator of ai.onnx, or null if it is not elementwise.
inline const ElementwiseOp* FindElementwise(std::string_view op, std::string_view domain) {
  if (!domain.empty()) return nullptr;
  for (const ElementwiseOp& row : kElementwiseOps) {
    if (op == row.name) return &row;
  }
  return nullptr;
}

}  // namespace mge::gpu
