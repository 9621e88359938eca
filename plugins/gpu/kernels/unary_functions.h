// SPDX-License-Identifier: Apache-2.0
// Functions of one operand as types that kernels are instantiated with. Included by kernels only.
#pragma once

#include <math.h>

#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<int8_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};

// Defines the function of an operator: of x and the operator's parameters a and b.
#define GPU_UNARY(Name, ...)                                                  \
  struct Name {                                                               \
    template <typename C>                                                     \
    static GPU_DEVICE C Of(C x, [[maybe_unused]] C a, [[maybe_unused]] C b) { \
      __VA_ARGS__                                                             \
    }                                                                         \
  };
GPU_UNARY(Relu, return x < C(0) ? C(0) : x;)
GPU_UNARY(Sign, return x > C(0) ? C(1) : x < C(0) ? static_cast<C>(-1) : x;)
GPU_UNARY(AbsFloat, return fabs(x);)
GPU_UNARY(AbsInt, using U = typename UnsignedOf<C>::type; return x < C(0) ? static_cast<C>(U(0) - static_cast<U>(x)) : x;)
GPU_UNARY(NegFloat, return -x;)
GPU_UNARY(NegInt, using U = typename UnsignedOf<C>::type; return static_cast<C>(U(0) - static_cast<U>(x));)
GPU_UNARY(BitwiseNot, return static_cast<C>(~x);)
GPU_UNARY(Not, return static_cast<C>(!x);)
GPU_UNARY(Ceil, return ceil(x);)
GPU_UNARY(Floor, return floor(x);)
GPU_UNARY(Round, return rint(x);)
GPU_UNARY(Sqrt, return sqrt(x);)
GPU_UNARY(Reciprocal, return C(1) / x;)
GPU_UNARY(Exp, return exp(x);)
GPU_UNARY(Log, return log(x);)
GPU_UNARY(Tanh, return tanh(x);)
GPU_UNARY(Sigmoid, const C e = exp(-fabs(x)); return x < C(0) ? e / (C(1) + e) : C(1) / (C(1) + e);)
GPU_UNARY(Erf, return erf(x);)
GPU_UNARY(ErfInt, return static_cast<C>(erf(static_cast<double>(x)));)
GPU_UNARY(Softplus, return (x < C(0) ? C(0) : x) + log1p(exp(-fabs(x)));)
GPU_UNARY(Softsign, return x / (C(1) + fabs(x));)
GPU_UNARY(Gelu, return C(0.5) * x * (C(1) + erf(x * C(0.70710678118654752440)));)
GPU_UNARY(GeluTanh, return C(0.5) * x * (C(1) + tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x)));)
GPU_UNARY(Mish, return x * tanh((x < C(0) ? C(0) : x) + log1p(exp(-fabs(x))));)
GPU_UNARY(HardSwish, const C s = x / C(6) + C(0.5); return x * (s < C(0) ? C(0) : s > C(1) ? C(1) : s);)
GPU_UNARY(Sin, return sin(x);)
GPU_UNARY(Cos, return cos(x);)
GPU_UNARY(Tan, return tan(x);)
GPU_UNARY(Asin, return asin(x);)
GPU_UNARY(Acos, return acos(x);)
GPU_UNARY(Atan, return atan(x);)
GPU_UNARY(Sinh, return sinh(x);)
GPU_UNARY(Cosh, return cosh(x);)
GPU_UNARY(Asinh, return asinh(x);)
GPU_UNARY(Acosh, return acosh(x);)
GPU_UNARY(Atanh, return atanh(x);)
GPU_UNARY(LeakyRelu, return x < C(0) ? a * x : x;)
GPU_UNARY(Elu, return x < C(0) ? a * expm1(x) : x;)
GPU_UNARY(Celu, return x < C(0) ? a * expm1(x / a) : x;)
GPU_UNARY(Selu, return b * (x > C(0) ? x : a * expm1(x));)
GPU_UNARY(HardSigmoid, const C s = a * x + b; return s < C(0) ? C(0) : s > C(1) ? C(1) : s;)
GPU_UNARY(ThresholdedRelu, return x > a ? x : C(0);)
GPU_UNARY(Shrink, return x < -a ? x + b : x > a ? x - b : C(0);)
GPU_UNARY(Swish, const C e = exp(-fabs(a * x)); return x * (a * x < C(0) ? e / (C(1) + e) : C(1) / (C(1) + e));)
GPU_UNARY(DivideBy, return x / a;)
// Predicates with a bool result.
GPU_UNARY(IsNaN, return static_cast<C>(x != x);)
GPU_UNARY(IsInf, return static_cast<C>((x == C(INFINITY) && a != C(0)) || (x == -C(INFINITY) && b != C(0)));)
#undef GPU_UNARY

}  // namespace mge::gpu
