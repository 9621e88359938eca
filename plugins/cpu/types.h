// SPDX-License-Identifier: Apache-2.0
// Storage types of 16-bit floats and their conversions (rounding to nearest even), and lists of element types for dispatch.
// Safe to include in vec/.
#pragma once

#include <stdint.h>

#include "mge/float16_bits.hpp"
#include "mge/types.h"

// Always inlined: vec/ is compiled for instruction sets that not every machine has, and the linker keeps only one copy.
#define MGE_CPU_INLINE inline __attribute__((always_inline))

namespace mge::cpu {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

MGE_CPU_INLINE float ToFloat(F16 h) { return HalfBitsToFloat(h.bits); }
MGE_CPU_INLINE float ToFloat(BF16 b) { return BFloat16BitsToFloat(b.bits); }
MGE_CPU_INLINE F16 ToF16(float x) { return {FloatToHalfBits(x)}; }
MGE_CPU_INLINE BF16 ToBF16(float x) { return {FloatToBFloat16Bits(x)}; }

template <typename T>
inline constexpr mge_dtype kTypeOf = MGE_DTYPE_UNDEFINED;
template <>
inline constexpr mge_dtype kTypeOf<float> = MGE_DTYPE_F32;
template <>
inline constexpr mge_dtype kTypeOf<double> = MGE_DTYPE_F64;
template <>
inline constexpr mge_dtype kTypeOf<F16> = MGE_DTYPE_F16;
template <>
inline constexpr mge_dtype kTypeOf<BF16> = MGE_DTYPE_BF16;
template <>
inline constexpr mge_dtype kTypeOf<int8_t> = MGE_DTYPE_I8;
template <>
inline constexpr mge_dtype kTypeOf<int16_t> = MGE_DTYPE_I16;
template <>
inline constexpr mge_dtype kTypeOf<int32_t> = MGE_DTYPE_I32;
template <>
inline constexpr mge_dtype kTypeOf<int64_t> = MGE_DTYPE_I64;
template <>
inline constexpr mge_dtype kTypeOf<uint8_t> = MGE_DTYPE_U8;
template <>
inline constexpr mge_dtype kTypeOf<uint16_t> = MGE_DTYPE_U16;
template <>
inline constexpr mge_dtype kTypeOf<uint32_t> = MGE_DTYPE_U32;
template <>
inline constexpr mge_dtype kTypeOf<uint64_t> = MGE_DTYPE_U64;
template <>
inline constexpr mge_dtype kTypeOf<bool> = MGE_DTYPE_BOOL;

// The type used to compute with T.
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<F16> {
  using type = float;
};
template <>
struct ComputeOf<BF16> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeOf<T>::type;

// Convert one element to its compute type and back.
template <typename T>
MGE_CPU_INLINE Compute<T> Widen(T x) {
  return x;
}
MGE_CPU_INLINE float Widen(F16 x) { return ToFloat(x); }
MGE_CPU_INLINE float Widen(BF16 x) { return ToFloat(x); }
template <typename T, typename C>
MGE_CPU_INLINE T Narrow(C x) {
  return static_cast<T>(x);
}
template <>
MGE_CPU_INLINE F16 Narrow<F16, float>(float x) {
  return ToF16(x);
}
template <>
MGE_CPU_INLINE BF16 Narrow<BF16, float>(float x) {
  return ToBF16(x);
}
template <>
MGE_CPU_INLINE F16 Narrow<F16, double>(double x) {
  return ToF16(static_cast<float>(x));
}
template <>
MGE_CPU_INLINE BF16 Narrow<BF16, double>(double x) {
  return ToBF16(static_cast<float>(x));
}

MGE_CPU_INLINE constexpr bool IsFloating(mge_dtype t) {
  return t == MGE_DTYPE_F32 || t == MGE_DTYPE_F64 || t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16;
}
MGE_CPU_INLINE constexpr bool IsHalf(mge_dtype t) { return t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16; }
MGE_CPU_INLINE constexpr bool IsInteger(mge_dtype t) {
  return (t >= MGE_DTYPE_U8 && t <= MGE_DTYPE_I64) || t == MGE_DTYPE_U32 || t == MGE_DTYPE_U64;
}
MGE_CPU_INLINE constexpr bool IsSigned(mge_dtype t) {
  return t == MGE_DTYPE_I8 || t == MGE_DTYPE_I16 || t == MGE_DTYPE_I32 || t == MGE_DTYPE_I64;
}
MGE_CPU_INLINE constexpr bool IsSupported(mge_dtype t) { return IsFloating(t) || IsInteger(t) || t == MGE_DTYPE_BOOL; }

// Returns the size of an element. Elements are moved by size, whatever their type.
MGE_CPU_INLINE constexpr uint32_t SizeOf(mge_dtype t) {
  switch (t) {
    case MGE_DTYPE_U8:
    case MGE_DTYPE_I8:
    case MGE_DTYPE_BOOL: return 1;
    case MGE_DTYPE_U16:
    case MGE_DTYPE_I16:
    case MGE_DTYPE_F16:
    case MGE_DTYPE_BF16: return 2;
    case MGE_DTYPE_F32:
    case MGE_DTYPE_I32:
    case MGE_DTYPE_U32: return 4;
    case MGE_DTYPE_F64:
    case MGE_DTYPE_I64:
    case MGE_DTYPE_U64: return 8;
    default: return 0;
  }
}

template <typename T>
struct Tag {
  using type = T;
};

// Calls f(Tag<T>{}) for the type among Ts that matches `dtype`. Returns false if there is none.
template <typename... Ts, typename F>
MGE_CPU_INLINE bool DispatchTo(mge_dtype dtype, F&& f) {
  return ((kTypeOf<Ts> == dtype ? (f(Tag<Ts>{}), true) : false) || ...);
}
template <typename F>
MGE_CPU_INLINE bool DispatchFloating(mge_dtype dtype, F&& f) {
  return DispatchTo<float, double, F16, BF16>(dtype, f);
}
template <typename F>
MGE_CPU_INLINE bool DispatchInteger(mge_dtype dtype, F&& f) {
  return DispatchTo<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(dtype, f);
}
template <typename F>
MGE_CPU_INLINE bool DispatchNumeric(mge_dtype dtype, F&& f) {
  return DispatchFloating(dtype, f) || DispatchInteger(dtype, f);
}

}  // namespace mge::cpu
