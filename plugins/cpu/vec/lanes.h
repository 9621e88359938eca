// SPDX-License-Identifier: Apache-2.0
// Lets one template serve all element types: vectors of floats and single integers. Included by vec/*.cc only.
#pragma once

#include <type_traits>

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {

template <typename T>
inline constexpr bool kFloat =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

// The lane type and vector type for T. Integers are processed one by one; the compiler vectorises them.
template <typename T, bool Float = kFloat<T>>
struct LaneOf {
  using C = Compute<T>;
  using V = Vec<C>;
  static constexpr int kWidth = kLanes<C>;
  MGE_INLINE V Get(const T* p, int n) { return n == kWidth ? Load(p) : LoadN(p, n); }
  MGE_INLINE void Put(T* p, V v, int n) { n == kWidth ? Store(p, v) : StoreN(p, v, n); }
  MGE_INLINE V All(C x) { return Splat(x); }
};
template <typename T>
struct LaneOf<T, false> {
  using C = T;
  using V = T;
  static constexpr int kWidth = 1;
  MGE_INLINE V Get(const T* p, int) { return *p; }
  MGE_INLINE void Put(T* p, V v, int) { *p = v; }
  MGE_INLINE V All(C x) { return x; }
};

template <typename V>
MGE_INLINE V Larger(V a, V b) {
  if constexpr (std::is_arithmetic_v<V>) {
    return MaxNumber(a, b);
  } else {
    return Max(a, b);
  }
}
template <typename V>
MGE_INLINE V Smaller(V a, V b) {
  if constexpr (std::is_arithmetic_v<V>) {
    return MinNumber(a, b);
  } else {
    return Min(a, b);
  }
}
template <typename V>
MGE_INLINE V Magnitude(V a) {
  if constexpr (std::is_arithmetic_v<V>) {
    return a < 0 ? static_cast<V>(0 - a) : a;
  } else {
    return Abs(a);
  }
}

}  // namespace mge::cpu::MGE_CPU_ISA
