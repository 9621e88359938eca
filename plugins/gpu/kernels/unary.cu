// SPDX-License-Identifier: Apache-2.0
// y = f(x). 16-bit floats are computed in float.
#include <math.h>

#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T> struct UnsignedOf { using type = T; };
template <> struct UnsignedOf<int8_t> { using type = uint32_t; };
template <> struct UnsignedOf<int16_t> { using type = uint32_t; };
template <> struct UnsignedOf<int32_t> { using type = uint32_t; };
template <> struct UnsignedOf<int64_t> { using type = uint64_t; };

// One function object for each operator: x, and the operator's parameters a and b.
#define GPU_UNARY(Name, ...)                                                                 \
  struct Name {                                                                              \
    template <typename C>                                                                    \
    static GPU_DEVICE C Of(C x, [[maybe_unused]] C a, [[maybe_unused]] C b) { __VA_ARGS__ } \
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
// Predicates, to bool.
GPU_UNARY(IsNaN, return static_cast<C>(x != x);)
GPU_UNARY(IsInf, return static_cast<C>((x == C(INFINITY) && a != C(0)) || (x == -C(INFINITY) && b != C(0)));)
#undef GPU_UNARY

template <typename T, typename R, typename Op>
GPU_DEVICE void Unary(const UnaryArgs& args) {
  using C = Compute<T>;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  R* y = static_cast<R*>(args.y);  // may be x
  const C a = static_cast<C>(args.a), b = static_cast<C>(args.b);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    y[i] = Narrow<R>::Of(Op::template Of<C>(Widen(x[i]), a, b));
  }
}

#define GPU_UNARY_KERNEL(name, type, T, R, Op) GPU_KERNEL(name##_##type, 256, UnaryArgs, (Unary<T, R, Op>))
#define GPU_FLOATS(name, Op)                      \
  GPU_UNARY_KERNEL(name, f32, float, float, Op)   \
  GPU_UNARY_KERNEL(name, f64, double, double, Op) \
  GPU_UNARY_KERNEL(name, f16, f16, f16, Op)       \
  GPU_UNARY_KERNEL(name, bf16, bf16, bf16, Op)
#define GPU_SIGNED(name, Op)                       \
  GPU_UNARY_KERNEL(name, i8, int8_t, int8_t, Op)    \
  GPU_UNARY_KERNEL(name, i16, int16_t, int16_t, Op) \
  GPU_UNARY_KERNEL(name, i32, int32_t, int32_t, Op) \
  GPU_UNARY_KERNEL(name, i64, int64_t, int64_t, Op)
#define GPU_UNSIGNED(name, Op)                       \
  GPU_UNARY_KERNEL(name, u8, uint8_t, uint8_t, Op)    \
  GPU_UNARY_KERNEL(name, u16, uint16_t, uint16_t, Op) \
  GPU_UNARY_KERNEL(name, u32, uint32_t, uint32_t, Op) \
  GPU_UNARY_KERNEL(name, u64, uint64_t, uint64_t, Op)
#define GPU_PREDICATE(name, Op)                     \
  GPU_UNARY_KERNEL(name, f32, float, uint8_t, Op)   \
  GPU_UNARY_KERNEL(name, f64, double, uint8_t, Op)  \
  GPU_UNARY_KERNEL(name, f16, f16, uint8_t, Op)     \
  GPU_UNARY_KERNEL(name, bf16, bf16, uint8_t, Op)

GPU_FLOATS(relu, Relu)
GPU_SIGNED(relu, Relu)
GPU_UNSIGNED(relu, Relu)
GPU_FLOATS(sign, Sign)
GPU_SIGNED(sign, Sign)
GPU_UNSIGNED(sign, Sign)
GPU_FLOATS(abs, AbsFloat)
GPU_SIGNED(abs, AbsInt)
GPU_UNSIGNED(abs, AbsInt)
GPU_FLOATS(neg, NegFloat)
GPU_SIGNED(neg, NegInt)
GPU_SIGNED(bitwise_not, BitwiseNot)
GPU_UNSIGNED(bitwise_not, BitwiseNot)
GPU_UNARY_KERNEL(not, bool, uint8_t, uint8_t, Not)
GPU_FLOATS(ceil, Ceil)
GPU_FLOATS(floor, Floor)
GPU_FLOATS(round, Round)
GPU_FLOATS(sqrt, Sqrt)
GPU_FLOATS(reciprocal, Reciprocal)
GPU_FLOATS(exp, Exp)
GPU_FLOATS(log, Log)
GPU_FLOATS(tanh, Tanh)
GPU_FLOATS(sigmoid, Sigmoid)
GPU_FLOATS(erf, Erf)
GPU_SIGNED(erf, ErfInt)
GPU_UNSIGNED(erf, ErfInt)
GPU_FLOATS(softplus, Softplus)
GPU_FLOATS(softsign, Softsign)
GPU_FLOATS(gelu, Gelu)
GPU_FLOATS(gelu_tanh, GeluTanh)
GPU_FLOATS(mish, Mish)
GPU_FLOATS(hard_swish, HardSwish)
GPU_FLOATS(sin, Sin)
GPU_FLOATS(cos, Cos)
GPU_FLOATS(tan, Tan)
GPU_FLOATS(asin, Asin)
GPU_FLOATS(acos, Acos)
GPU_FLOATS(atan, Atan)
GPU_FLOATS(sinh, Sinh)
GPU_FLOATS(cosh, Cosh)
GPU_FLOATS(asinh, Asinh)
GPU_FLOATS(acosh, Acosh)
GPU_FLOATS(atanh, Atanh)
GPU_FLOATS(leaky_relu, LeakyRelu)
GPU_FLOATS(elu, Elu)
GPU_FLOATS(celu, Celu)
GPU_FLOATS(selu, Selu)
GPU_FLOATS(hard_sigmoid, HardSigmoid)
GPU_FLOATS(thresholded_relu, ThresholdedRelu)
GPU_FLOATS(shrink, Shrink)
GPU_FLOATS(swish, Swish)
GPU_FLOATS(divide_by, DivideBy)
GPU_PREDICATE(is_nan, IsNaN)
GPU_PREDICATE(is_inf, IsInf)

}  // namespace mge::gpu
