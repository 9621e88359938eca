// SPDX-License-Identifier: Apache-2.0
// The functions of elementwise operators. Includes no C++ library header, so that vector code and device compilers can include
// it.
#pragma once

#include <stdint.h>

namespace mge {

// Calls F(Name, name) for each function: its name in ElementwiseFunction without the k, and as a word.
// clang-format off
#define MGE_ELEMENTWISE_FUNCTIONS(F)                                                                                      \
  F(Abs, abs) F(Acos, acos) F(Acosh, acosh) F(Asin, asin) F(Asinh, asinh) F(Atan, atan) F(Atanh, atanh) F(Ceil, ceil)     \
  F(Celu, celu) F(Cos, cos) F(Cosh, cosh) F(Elu, elu) F(Erf, erf) F(Exp, exp) F(Floor, floor) F(Gelu, gelu)               \
  F(GeluTanh, gelu_tanh) F(HardSigmoid, hard_sigmoid) F(HardSwish, hard_swish) F(IsInf, is_inf) F(IsNaN, is_nan)          \
  F(LeakyRelu, leaky_relu) F(Log, log) F(Mish, mish) F(Neg, neg) F(Not, not) F(BitwiseNot, bitwise_not)                   \
  F(Reciprocal, reciprocal) F(Relu, relu) F(Round, round) F(Selu, selu) F(Shrink, shrink) F(Sigmoid, sigmoid)             \
  F(Sign, sign) F(Sin, sin) F(Sinh, sinh) F(Softplus, softplus) F(Softsign, softsign) F(Sqrt, sqrt) F(Swish, swish)       \
  F(Tan, tan) F(Tanh, tanh) F(ThresholdedRelu, thresholded_relu)                                                          \
  F(Add, add) F(And, and) F(BitwiseAnd, bitwise_and) F(BitwiseOr, bitwise_or) F(BitwiseXor, bitwise_xor) F(Div, div)      \
  F(Equal, equal) F(Fmod, fmod) F(Greater, greater) F(GreaterOrEqual, greater_or_equal) F(Less, less)                     \
  F(LessOrEqual, less_or_equal) F(Max, max) F(Min, min) F(Mod, mod) F(Mul, mul) F(Or, or) F(Pow, pow) F(PRelu, prelu)     \
  F(ShiftLeft, shift_left) F(ShiftRight, shift_right) F(Sub, sub) F(Xor, xor)
// clang-format on

// A function of one or two numbers. kGeluTanh is the approximation of kGelu by tanh. kFmod gives the sign of the dividend, kMod
// that of the divisor.
enum class ElementwiseFunction : uint8_t {
#define MGE_FUNCTION(Name, name) k##Name,
  MGE_ELEMENTWISE_FUNCTIONS(MGE_FUNCTION)
#undef MGE_FUNCTION
};

}  // namespace mge
