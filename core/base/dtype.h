// SPDX-License-Identifier: Apache-2.0
// Element types, their sizes and names, sets of them, and dispatch from a value to a C++ type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/base/float16.h"
#include "mge/types.h"

namespace mge {

enum class DType : int32_t {
  kUndefined = MGE_DTYPE_UNDEFINED,
  kF32 = MGE_DTYPE_F32,
  kU8 = MGE_DTYPE_U8,
  kI8 = MGE_DTYPE_I8,
  kU16 = MGE_DTYPE_U16,
  kI16 = MGE_DTYPE_I16,
  kI32 = MGE_DTYPE_I32,
  kI64 = MGE_DTYPE_I64,
  kString = MGE_DTYPE_STRING,
  kBool = MGE_DTYPE_BOOL,
  kF16 = MGE_DTYPE_F16,
  kF64 = MGE_DTYPE_F64,
  kU32 = MGE_DTYPE_U32,
  kU64 = MGE_DTYPE_U64,
  kC64 = MGE_DTYPE_C64,
  kC128 = MGE_DTYPE_C128,
  kBF16 = MGE_DTYPE_BF16,
  kF8E4M3FN = MGE_DTYPE_F8E4M3FN,
  kF8E4M3FNUZ = MGE_DTYPE_F8E4M3FNUZ,
  kF8E5M2 = MGE_DTYPE_F8E5M2,
  kF8E5M2FNUZ = MGE_DTYPE_F8E5M2FNUZ,
  kU4 = MGE_DTYPE_U4,
  kI4 = MGE_DTYPE_I4,
  kF4E2M1 = MGE_DTYPE_F4E2M1,
  kF8E8M0 = MGE_DTYPE_F8E8M0,
  kU2 = MGE_DTYPE_U2,
  kI2 = MGE_DTYPE_I2,
};
inline constexpr int kDTypeCount = 27;

// Returns the size of one element in bytes: sizeof(std::string) for a string, 0 for kUndefined and unknown values.
int64_t ElementBytes(DType dtype);

// Returns "float32", "bfloat16" and so on, or "undefined" for an unknown value.
std::string_view DTypeName(DType dtype);

// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> list) {
    for (DType d : list) bits_ |= 1u << static_cast<int>(d);
  }
  constexpr bool Contains(DType d) const { return static_cast<unsigned>(d) < 32 && ((bits_ >> static_cast<int>(d)) & 1u); }
  constexpr TypeSet operator|(TypeSet other) const {
    TypeSet r;
    r.bits_ = bits_ | other.bits_;
    return r;
  }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  uint32_t bits_ = 0;
};

inline constexpr TypeSet kFloating = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
inline constexpr TypeSet kSigned = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
inline constexpr TypeSet kUnsigned = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
inline constexpr TypeSet kInteger = kSigned | kUnsigned;
inline constexpr TypeSet kNumeric = kFloating | kInteger;
inline constexpr TypeSet kBoolean = {DType::kBool};
inline constexpr TypeSet kStrings = {DType::kString};
inline constexpr TypeSet kComplex = {DType::kC64, DType::kC128};
inline constexpr TypeSet kIndex = {DType::kI32, DType::kI64};
inline constexpr TypeSet kFixedSize = kNumeric | kBoolean;  // the types that backends support
// Types of 8 bits and less, which only host evaluators compute with (core/base/narrow.h).
inline constexpr TypeSet kNarrowInteger = {DType::kU4, DType::kI4, DType::kU2, DType::kI2};
inline constexpr TypeSet kNarrowFloating = {DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                            DType::kF8E5M2FNUZ, DType::kF4E2M1,     DType::kF8E8M0};
inline constexpr TypeSet kNarrow = kNarrowInteger | kNarrowFloating;
inline constexpr TypeSet kAnyType = kFixedSize | kStrings | kComplex | kNarrow;

template <typename T>
struct TypeTag {
  using type = T;
};

template <typename T>
inline constexpr DType kDTypeOf = DType::kUndefined;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kF16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kI16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kU8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kU16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kU32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kU64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

namespace internal {
template <typename F, typename... Ts>
bool DispatchImpl(DType dtype, F& f) {
  return ((kDTypeOf<Ts> == dtype ? (f(TypeTag<Ts>{}), true) : false) || ...);
}
}  // namespace internal

// The Dispatch functions call f(TypeTag<T>{}) with the C++ type T of `dtype`. They return false, without a call, if `dtype`
// is not in the group of types that the function's name gives.
template <typename F>
bool DispatchFloating(DType dtype, F&& f) {
  return internal::DispatchImpl<F, float, double, Half, BFloat16>(dtype, f);
}
template <typename F>
bool DispatchInteger(DType dtype, F&& f) {
  return internal::DispatchImpl<F, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(dtype, f);
}
template <typename F>
bool DispatchNumeric(DType dtype, F&& f) {
  return DispatchFloating(dtype, f) || DispatchInteger(dtype, f);
}
// Dispatches the numeric types and bool.
template <typename F>
bool DispatchFixedSize(DType dtype, F&& f) {
  return DispatchNumeric(dtype, f) || internal::DispatchImpl<F, bool>(dtype, f);
}
// A placeholder for an element of 16 bytes.
struct Bytes16 {
  uint64_t lo, hi;
};
// Dispatches by element size only, with an unsigned type of that size. Use it to copy elements without reading them.
// Returns false for strings.
template <typename F>
bool DispatchBytes(DType dtype, F&& f) {
  if (dtype == DType::kString) return false;
  switch (ElementBytes(dtype)) {
    case 1: f(TypeTag<uint8_t>{}); return true;
    case 2: f(TypeTag<uint16_t>{}); return true;
    case 4: f(TypeTag<uint32_t>{}); return true;
    case 8: f(TypeTag<uint64_t>{}); return true;
    case 16: f(TypeTag<Bytes16>{}); return true;
    default: return false;
  }
}

}  // namespace mge
