// SPDX-License-Identifier: Apache-2.0
// Storage types of 16-bit floats and their conversions (rounding to nearest even), and lists of element types for dispatch.
// Safe to include in vec/.
#pragma once

#include <stdint.h>

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

MGE_CPU_INLINE float ToFloat(BF16 b) {
  uint32_t bits = static_cast<uint32_t>(b.bits) << 16;
  float f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}
MGE_CPU_INLINE BF16 ToBF16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
MGE_CPU_INLINE float ToFloat(F16 h) {
  uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16, exponent = (h.bits >> 10) & 31u, mantissa = h.bits & 0x3ffu;
  uint32_t bits = exponent == 31 ? sign | 0x7f800000u | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
  float f = static_cast<float>(mantissa) * 0x1p-24f;  // if subnormal
  if (exponent == 0) return sign ? -f : f;
  __builtin_memcpy(&f, &bits, 4);
  return f;
}
MGE_CPU_INLINE F16 ToF16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {  // subnormal: the float unit rounds at 2^-24
    float scaled;
    __builtin_memcpy(&scaled, &magnitude, 4);
    scaled += 0.5f;
    uint32_t s;
    __builtin_memcpy(&s, &scaled, 4);
    return {static_cast<uint16_t>(sign | (s - 0x3f000000u))};
  }
  return {static_cast<uint16_t>(sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13))};
}

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
