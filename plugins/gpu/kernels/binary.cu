// SPDX-License-Identifier: Apache-2.0
// z = f(x, y) with broadcasting, comparisons, choices between two, limits. 16-bit floats are computed in float; integers wrap
// around.
#include <math.h>

#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Arithmetic of integers in an unsigned type of at least 32 bits.
template <typename T> struct WideOf { using type = T; };
template <> struct WideOf<int8_t> { using type = uint32_t; };
template <> struct WideOf<int16_t> { using type = uint32_t; };
template <> struct WideOf<int32_t> { using type = uint32_t; };
template <> struct WideOf<int64_t> { using type = uint64_t; };
template <> struct WideOf<uint8_t> { using type = uint32_t; };
template <> struct WideOf<uint16_t> { using type = uint32_t; };

template <typename C> inline constexpr bool kIsFloat = false;
template <> inline constexpr bool kIsFloat<float> = true;
template <> inline constexpr bool kIsFloat<double> = true;
template <typename C> inline constexpr bool kIsSigned = static_cast<C>(-1) < C(0);

struct Add {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Sub {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) - static_cast<W>(b));
  }
};
struct Mul {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) * static_cast<W>(b));
  }
};
// True if an integer division by b is not defined; reported.
template <typename C>
GPU_DEVICE bool NoDivisor(C a, C b, Fault* fault) {
  bool bad = b == C(0);
  if constexpr (kIsSigned<C>) bad = bad || (b == static_cast<C>(-1) && a == static_cast<C>(C(1) << (8 * sizeof(C) - 1)));
  if (bad) Raise(fault, Fault::kDivision, static_cast<int64_t>(a), static_cast<int64_t>(b));
  return bad;
}
struct Div {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    if constexpr (!kIsFloat<C>) {
      if (NoDivisor(a, b, fault)) return C(0);
    }
    return static_cast<C>(a / b);
  }
};
struct Fmod {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    if constexpr (kIsFloat<C>) {
      return fmod(a, b);
    } else {
      if (kIsSigned<C> && b == static_cast<C>(-1)) return C(0);
      return NoDivisor(a, b, fault) ? C(0) : static_cast<C>(a % b);
    }
  }
};
struct Mod {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    const C r = Fmod::Of(a, b, fault);
    return r != C(0) && (r < C(0)) != (b < C(0)) ? static_cast<C>(r + b) : r;
  }
};
struct Max {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) { return a > b || a != a ? a : b; }
};
struct Min {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) { return a < b || a != a ? a : b; }
};
struct Pow {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    if constexpr (kIsFloat<C>) {
      return pow(a, b);
    } else {
      if (kIsSigned<C> && b < C(0)) {
        if (a == C(0)) Raise(fault, Fault::kDivision, 1, 0);
        if (a == static_cast<C>(-1)) return (b & 1) ? a : C(1);
        return a == C(1) ? a : C(0);
      }
      using W = typename WideOf<C>::type;
      W result = 1, factor = static_cast<W>(a);
      for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
        if (e & 1) result *= factor;
        factor *= factor;
      }
      return static_cast<C>(result);
    }
  }
};
struct PRelu {
  template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) { return a < C(0) ? Mul::Of(a, b, nullptr) : a; }
};
#define GPU_BINARY(Name, expression)                                                      \
  struct Name {                                                                           \
    template <typename C> static GPU_DEVICE C Of(C a, C b, Fault*) { return static_cast<C>(expression); } \
  };
#define GPU_COMPARISON(Name, expression)                                                       \
  struct Name {                                                                                \
    template <typename C> static GPU_DEVICE uint8_t Of(C a, C b, Fault*) { return expression; } \
  };
GPU_BINARY(BitwiseAnd, a & b)
GPU_BINARY(BitwiseOr, a | b)
GPU_BINARY(BitwiseXor, a ^ b)
GPU_BINARY(ShiftLeft, b >= C(8 * sizeof(C)) ? 0 : static_cast<uint64_t>(a) << b)
GPU_BINARY(ShiftRight, b >= C(8 * sizeof(C)) ? 0 : static_cast<uint64_t>(a) >> b)
GPU_COMPARISON(And, a && b)
GPU_COMPARISON(Or, a || b)
GPU_COMPARISON(Xor, !a != !b)
GPU_COMPARISON(Equal, a == b)
GPU_COMPARISON(Greater, a > b)
GPU_COMPARISON(GreaterOrEqual, a >= b)
GPU_COMPARISON(Less, a < b)
GPU_COMPARISON(LessOrEqual, a <= b)
#undef GPU_BINARY
#undef GPU_COMPARISON

// Offset of an operand at element i of the output.
GPU_DEVICE int64_t Offset(const Walk& w, const int64_t* strides, int64_t i) {
  int64_t offset = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    const int64_t q = i / w.dims[d];
    offset += (i - q * w.dims[d]) * strides[d];
    i = q;
  }
  return offset;
}

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
#define GPU_FLOATS(name, Op)                        \
  GPU_BINARY_KERNEL(name, f32, float, float, Op)    \
  GPU_BINARY_KERNEL(name, f64, double, double, Op)  \
  GPU_BINARY_KERNEL(name, f16, f16, f16, Op)        \
  GPU_BINARY_KERNEL(name, bf16, bf16, bf16, Op)
#define GPU_UNSIGNED(name, Op)                         \
  GPU_BINARY_KERNEL(name, u8, uint8_t, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, u16, uint16_t, uint16_t, Op) \
  GPU_BINARY_KERNEL(name, u32, uint32_t, uint32_t, Op) \
  GPU_BINARY_KERNEL(name, u64, uint64_t, uint64_t, Op)
#define GPU_INTEGERS(name, Op)                        \
  GPU_UNSIGNED(name, Op)                              \
  GPU_BINARY_KERNEL(name, i8, int8_t, int8_t, Op)     \
  GPU_BINARY_KERNEL(name, i16, int16_t, int16_t, Op)  \
  GPU_BINARY_KERNEL(name, i32, int32_t, int32_t, Op)  \
  GPU_BINARY_KERNEL(name, i64, int64_t, int64_t, Op)
#define GPU_NUMBERS(name, Op) GPU_FLOATS(name, Op) GPU_INTEGERS(name, Op)
#define GPU_COMPARES(name, Op)                         \
  GPU_BINARY_KERNEL(name, f32, float, uint8_t, Op)     \
  GPU_BINARY_KERNEL(name, f64, double, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, f16, f16, uint8_t, Op)       \
  GPU_BINARY_KERNEL(name, bf16, bf16, uint8_t, Op)     \
  GPU_BINARY_KERNEL(name, u8, uint8_t, uint8_t, Op)    \
  GPU_BINARY_KERNEL(name, u16, uint16_t, uint8_t, Op)  \
  GPU_BINARY_KERNEL(name, u32, uint32_t, uint8_t, Op)  \
  GPU_BINARY_KERNEL(name, u64, uint64_t, uint8_t, Op)  \
  GPU_BINARY_KERNEL(name, i8, int8_t, uint8_t, Op)     \
  GPU_BINARY_KERNEL(name, i16, int16_t, uint8_t, Op)   \
  GPU_BINARY_KERNEL(name, i32, int32_t, uint8_t, Op)   \
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
// By the size of an element.
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
