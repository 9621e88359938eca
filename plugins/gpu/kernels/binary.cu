// SPDX-License-Identifier: Apache-2.0
// Functions of two operands with broadcasting, comparisons, Where, Clip. 16-bit floats are computed in float; integers wrap
// around.
#include "plugins/gpu/kernels/binary_functions.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T, typename R, typename Op>
GPU_DEVICE void Binary(const BinaryArgs& args) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(args.x);
  const T* y = static_cast<const T*>(args.y);
  R* z = static_cast<R*>(args.z);  // may be x or y
  const bool plain = args.walk.rank == 0;
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const int64_t ix = plain ? i * args.x_step : Offset(args.walk, args.x_strides, i);
    const int64_t iy = plain ? i * args.y_step : Offset(args.walk, args.y_strides, i);
    z[i] = Narrow<R>::Of(Op::template Of<C>(Widen(x[ix]), Widen(y[iy]), args.fault));
  }
}

template <typename T>
GPU_DEVICE void Where(const WhereArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  const T* y = static_cast<const T*>(args.y);
  T* z = static_cast<T*>(args.z);
  const bool plain = args.walk.rank == 0;
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const int64_t ic = plain ? i * args.c_step : Offset(args.walk, args.c_strides, i);
    const int64_t ix = plain ? i * args.x_step : Offset(args.walk, args.x_strides, i);
    const int64_t iy = plain ? i * args.y_step : Offset(args.walk, args.y_strides, i);
    z[i] = args.c[ic] ? x[ix] : y[iy];
  }
}

template <typename T>
GPU_DEVICE void Clip(const ClipArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  const T* low = static_cast<const T*>(args.low);
  const T* high = static_cast<const T*>(args.high);
  T* y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    auto v = Widen(x[i]);
    if (low && v < Widen(*low)) v = Widen(*low);
    if (high && v > Widen(*high)) v = Widen(*high);
    y[i] = Narrow<T>::Of(v);
  }
}

#define GPU_BINARY_KERNEL(name, type, T, R, Op) GPU_KERNEL(name##_##type, 256, BinaryArgs, (Binary<T, R, Op>))
#define GPU_FLOATS(name, Op)                       \
  GPU_BINARY_KERNEL(name, f32, float, float, Op)   \
  GPU_BINARY_KERNEL(name, f64, double, double, Op) \
  GPU_BINARY_KERNEL(name, f16, f16, f16, Op)       \
  GPU_BINARY_KERNEL(name, bf16, bf16, bf16, Op)
#define GPU_UNSIGNED(name, Op)                         \
  GPU_BINARY_KERNEL(name, u8, uint8_t, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, u16, uint16_t, uint16_t, Op) \
  GPU_BINARY_KERNEL(name, u32, uint32_t, uint32_t, Op) \
  GPU_BINARY_KERNEL(name, u64, uint64_t, uint64_t, Op)
#define GPU_INTEGERS(name, Op)                       \
  GPU_UNSIGNED(name, Op)                             \
  GPU_BINARY_KERNEL(name, i8, int8_t, int8_t, Op)    \
  GPU_BINARY_KERNEL(name, i16, int16_t, int16_t, Op) \
  GPU_BINARY_KERNEL(name, i32, int32_t, int32_t, Op) \
  GPU_BINARY_KERNEL(name, i64, int64_t, int64_t, Op)
#define GPU_NUMBERS(name, Op) GPU_FLOATS(name, Op) GPU_INTEGERS(name, Op)
#define GPU_COMPARES(name, Op)                        \
  GPU_BINARY_KERNEL(name, f32, float, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, f64, double, uint8_t, Op)   \
  GPU_BINARY_KERNEL(name, f16, f16, uint8_t, Op)      \
  GPU_BINARY_KERNEL(name, bf16, bf16, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, u8, uint8_t, uint8_t, Op)   \
  GPU_BINARY_KERNEL(name, u16, uint16_t, uint8_t, Op) \
  GPU_BINARY_KERNEL(name, u32, uint32_t, uint8_t, Op) \
  GPU_BINARY_KERNEL(name, u64, uint64_t, uint8_t, Op) \
  GPU_BINARY_KERNEL(name, i8, int8_t, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, i16, int16_t, uint8_t, Op)  \
  GPU_BINARY_KERNEL(name, i32, int32_t, uint8_t, Op)  \
  GPU_BINARY_KERNEL(name, i64, int64_t, uint8_t, Op)

GPU_NUMBERS(add, Add)
GPU_NUMBERS(sub, Sub)
GPU_NUMBERS(mul, Mul)
GPU_NUMBERS(div, Div)
GPU_NUMBERS(max, Max)
GPU_NUMBERS(min, Min)
GPU_NUMBERS(fmod, Fmod)
GPU_INTEGERS(mod, Mod)
GPU_FLOATS(pow, Pow)
GPU_BINARY_KERNEL(pow, i32, int32_t, int32_t, Pow)
GPU_BINARY_KERNEL(pow, i64, int64_t, int64_t, Pow)
GPU_NUMBERS(prelu, PRelu)
GPU_INTEGERS(bitwise_and, BitwiseAnd)
GPU_INTEGERS(bitwise_or, BitwiseOr)
GPU_INTEGERS(bitwise_xor, BitwiseXor)
GPU_UNSIGNED(shift_left, ShiftLeft)
GPU_UNSIGNED(shift_right, ShiftRight)
GPU_BINARY_KERNEL(and, bool, uint8_t, uint8_t, And)
GPU_BINARY_KERNEL(or, bool, uint8_t, uint8_t, Or)
GPU_BINARY_KERNEL(xor, bool, uint8_t, uint8_t, Xor)
GPU_COMPARES(equal, Equal)
GPU_BINARY_KERNEL(equal, bool, uint8_t, uint8_t, Equal)
GPU_COMPARES(greater, Greater)
GPU_COMPARES(greater_or_equal, GreaterOrEqual)
GPU_COMPARES(less, Less)
GPU_COMPARES(less_or_equal, LessOrEqual)
// Where by element size.
GPU_KERNEL(where_1, 256, WhereArgs, Where<uint8_t>)
GPU_KERNEL(where_2, 256, WhereArgs, Where<uint16_t>)
GPU_KERNEL(where_4, 256, WhereArgs, Where<uint32_t>)
GPU_KERNEL(where_8, 256, WhereArgs, Where<uint64_t>)
GPU_KERNEL(clip_f32, 256, ClipArgs, Clip<float>)
GPU_KERNEL(clip_f64, 256, ClipArgs, Clip<double>)
GPU_KERNEL(clip_f16, 256, ClipArgs, Clip<f16>)
GPU_KERNEL(clip_bf16, 256, ClipArgs, Clip<bf16>)
GPU_KERNEL(clip_i8, 256, ClipArgs, Clip<int8_t>)
GPU_KERNEL(clip_i16, 256, ClipArgs, Clip<int16_t>)
GPU_KERNEL(clip_i32, 256, ClipArgs, Clip<int32_t>)
GPU_KERNEL(clip_i64, 256, ClipArgs, Clip<int64_t>)
GPU_KERNEL(clip_u8, 256, ClipArgs, Clip<uint8_t>)
GPU_KERNEL(clip_u16, 256, ClipArgs, Clip<uint16_t>)
GPU_KERNEL(clip_u32, 256, ClipArgs, Clip<uint32_t>)
GPU_KERNEL(clip_u64, 256, ClipArgs, Clip<uint64_t>)

}  // namespace mge::gpu
