// SPDX-License-Identifier: Apache-2.0
// A chain of elementwise float32 functions as a program, which one kernel interprets. Values may also be 8-bit integers, which
// are quantized or dequantized. Used by kernels and operators.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/elementwise.h"

namespace mge::gpu {

// Kernel names and the function types of unary_functions.h and binary_functions.h.
// clang-format off
#define GPU_CHAIN_UNARY(F)                                                                                              \
  F(relu, Relu) F(sign, Sign) F(abs, AbsFloat) F(neg, NegFloat) F(ceil, Ceil) F(floor, Floor) F(round, Round)           \
  F(sqrt, Sqrt) F(reciprocal, Reciprocal) F(exp, Exp) F(log, Log) F(tanh, Tanh) F(sigmoid, Sigmoid) F(erf, Erf)         \
  F(softplus, Softplus) F(softsign, Softsign) F(gelu, Gelu) F(gelu_tanh, GeluTanh) F(mish, Mish)                        \
  F(hard_swish, HardSwish) F(sin, Sin) F(cos, Cos) F(leaky_relu, LeakyRelu) F(elu, Elu) F(celu, Celu) F(selu, Selu)     \
  F(hard_sigmoid, HardSigmoid) F(thresholded_relu, ThresholdedRelu) F(shrink, Shrink) F(swish, Swish)
#define GPU_CHAIN_BINARY(F) \
  F(add, Add) F(sub, Sub) F(mul, Mul) F(div, Div) F(max, Max) F(min, Min) F(pow, Pow) F(prelu, PRelu)
// clang-format on

// After the codes of these functions come those of a value, a scale and a zero point.
#define GPU_CHAIN_CODE(name, Function) kChain_##name,
enum ChainCode : int32_t {
  GPU_CHAIN_UNARY(GPU_CHAIN_CODE) GPU_CHAIN_BINARY(GPU_CHAIN_CODE) kChainCodes,
  kChainQuantizeToU8 = kChainCodes,
  kChainQuantizeToI8,
  kChainDequantize
};
#undef GPU_CHAIN_CODE
enum ChainType : int8_t { kChainF32, kChainU8, kChainI8 };

constexpr int kMaxChainInputs = 8, kMaxChainSteps = 32, kMaxChainExtras = 2;

// One step. Value number inputs + s of an element is f(value x, value y, value z), with parameters a and b, as far as f has
// them. A negative z is the zero point 0.
struct ChainStep {
  int32_t code;
  int16_t x, y;
  float a, b;
  int16_t z, reserved;
};

// The arguments of a chain: a program of steps and its operands.
struct ChainArgs {
  const void* inputs[kMaxChainInputs];
  void* output;                   // receives the last value
  void* extras[kMaxChainExtras];  // receive other values
  int64_t n;
  Walk walk;
  int64_t strides[kMaxChainInputs][8];
  int64_t steps_of[kMaxChainInputs];  // if the walk has rank 0: step of each input
  int32_t input_count, step_count, extra_count;
  int32_t extra_steps[kMaxChainExtras];  // the steps whose values `extras` receive
  ChainType input_types[kMaxChainInputs], output_type, extra_types[kMaxChainExtras];
  ChainStep steps[kMaxChainSteps];
};

}  // namespace mge::gpu
