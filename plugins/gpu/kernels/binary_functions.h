// SPDX-License-Identifier: Apache-2.0
// Functions of two operands as types that kernels are instantiated with, and broadcasting. Included by kernels only.
#pragma once

#include <math.h>

#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/kernels/wide.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename C>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;
template <typename C>
inline constexpr bool kIsSigned = static_cast<C>(-1) < C(0);

struct Add {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Sub {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) - static_cast<W>(b));
  }
};
struct Mul {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    using W = typename WideOf<C>::type;
    return static_cast<C>(static_cast<W>(a) * static_cast<W>(b));
  }
};
// Returns true and reports a fault if the divisor of integers is 0.
template <typename C>
GPU_DEVICE bool NoDivisor(C a, C b, Fault* fault) {
  const bool bad = b == C(0);
  if (bad) Raise(fault, Fault::kDivision, static_cast<int64_t>(a), 0);
  return bad;
}
struct Div {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    if constexpr (!kIsFloat<C>) {
      if (NoDivisor(a, b, fault)) return C(0);
      if (kIsSigned<C> && b == static_cast<C>(-1)) return Sub::Of(C(0), a, fault);  // the lowest number wraps around
    }
    return static_cast<C>(a / b);
  }
};
struct Fmod {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    if constexpr (kIsFloat<C>) {
      return fmod(a, b);
    } else {
      if (kIsSigned<C> && b == static_cast<C>(-1)) return C(0);
      return NoDivisor(a, b, fault) ? C(0) : static_cast<C>(a % b);
    }
  }
};
struct Mod {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault* fault) {
    const C r = Fmod::Of(a, b, fault);
    return r != C(0) && (r < C(0)) != (b < C(0)) ? static_cast<C>(r + b) : r;
  }
};
struct Max {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    return a < b || a != a ? a : b;
  }
};
struct Pow {
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault* fault) {
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
  template <typename C>
  static GPU_DEVICE C Of(C a, C b, Fault*) {
    return a < C(0) ? Mul::Of(a, b, nullptr) : a;
  }
};
#define GPU_BINARY(Name, expression)           \
  struct Name {                                \
    template <typename C>                      \
    static GPU_DEVICE C Of(C a, C b, Fault*) { \
      return static_cast<C>(expression);       \
    }                                          \
  };
#define GPU_COMPARISON(Name, expression)             \
  struct Name {                                      \
    template <typename C>                            \
    static GPU_DEVICE uint8_t Of(C a, C b, Fault*) { \
      return expression;                             \
    }                                                \
  };
GPU_BINARY(BitwiseAnd, a& b)
GPU_BINARY(BitwiseOr, a | b)
GPU_BINARY(BitwiseXor, a ^ b)
GPU_BINARY(ShiftLeft, b >= C(8 * sizeof(C)) ? 0 : static_cast<uint64_t>(a) << b)
GPU_BINARY(ShiftRight, b >= C(8 * sizeof(C)) ? 0 : static_cast<uint64_t>(a) >> b)
GPU_COMPARISON(And, a&& b)
GPU_COMPARISON(Or, a || b)
GPU_COMPARISON(Xor, !a != !b)
GPU_COMPARISON(Equal, a == b)
GPU_COMPARISON(Greater, a > b)
GPU_COMPARISON(GreaterOrEqual, a >= b)
GPU_COMPARISON(Less, a < b)
GPU_COMPARISON(LessOrEqual, a <= b)
#undef GPU_BINARY
#undef GPU_COMPARISON

// Returns the offset of an operand at element i of the output.
GPU_DEVICE int64_t Offset(const Walk& w, const int64_t* strides, int64_t i) {
  int64_t offset = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    const Division at = Divide(i, w.dims[d]);
    offset += at.rest * strides[d];
    i = at.quotient;
  }
  return offset;
}

}  // namespace mge::gpu
