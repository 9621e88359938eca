// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one operand. 16-bit floats are computed in float.
#include "plugins/gpu/kernels/activate.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/unary_functions.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

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
#define GPU_SIGNED(name, Op)                        \
  GPU_UNARY_KERNEL(name, i8, int8_t, int8_t, Op)    \
  GPU_UNARY_KERNEL(name, i16, int16_t, int16_t, Op) \
  GPU_UNARY_KERNEL(name, i32, int32_t, int32_t, Op) \
  GPU_UNARY_KERNEL(name, i64, int64_t, int64_t, Op)
#define GPU_UNSIGNED(name, Op)                        \
  GPU_UNARY_KERNEL(name, u8, uint8_t, uint8_t, Op)    \
  GPU_UNARY_KERNEL(name, u16, uint16_t, uint16_t, Op) \
  GPU_UNARY_KERNEL(name, u32, uint32_t, uint32_t, Op) \
  GPU_UNARY_KERNEL(name, u64, uint64_t, uint64_t, Op)
#define GPU_PREDICATE(name, Op)                    \
  GPU_UNARY_KERNEL(name, f32, float, uint8_t, Op)  \
  GPU_UNARY_KERNEL(name, f64, double, uint8_t, Op) \
  GPU_UNARY_KERNEL(name, f16, f16, uint8_t, Op)    \
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

template <typename T>
GPU_DEVICE void ActivateAll(const ActivateArgs& args) {
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    static_cast<T*>(args.y)[i] = Narrow<T>::Of(Activate(args.activation, Widen(static_cast<const T*>(args.x)[i])));
  }
}
// Behind a product or a convolution of a library.
#define GPU_ACTIVATE(type, T) GPU_KERNEL(activate_##type, 256, ActivateArgs, ActivateAll<T>)
GPU_ACTIVATE(f32, float)
GPU_ACTIVATE(f64, double)
GPU_ACTIVATE(f16, f16)
GPU_ACTIVATE(bf16, bf16)

}  // namespace mge::gpu
