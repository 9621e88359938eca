// SPDX-License-Identifier: Apache-2.0
// The last steps of an 8-bit product or convolution: from exact sums to the result. Included by vec/*.cc only.
#pragma once

#include "vec/bytes.h"
#include "vec/int8.h"

namespace mge::cpu::MGE_CPU_ISA {

// Stores the result of kF sums, or of the first `lanes`, at element `at` of C.
template <Int8Result Result>
MGE_INLINE void FinishVector(const Int8Task& t, VI sum, int64_t at, int lanes, VF scale, VF bias) {
  const bool whole = lanes == kF;
  if constexpr (Result == Int8Result::kInt32) {
    float* c = static_cast<float*>(t.c) + at;
    if (whole)
      Store(c, (VF)sum);
    else
      StoreN(c, (VF)sum, lanes);
  } else if constexpr (Result == Int8Result::kFloat || Result == Int8Result::kAddFloat) {
    float* c = static_cast<float*>(t.c) + at;
    VF v = ToVF(sum) * scale;
    if constexpr (Result == Int8Result::kAddFloat)
      v += whole ? Load(c) : LoadN(c, lanes);
    else if (t.bias)
      v += bias;
    if (whole)
      Store(c, v);
    else
      StoreN(c, v, lanes);
  } else {
    constexpr bool kSigned = Result == Int8Result::kInt8;
    VF v = ToVF(sum) * scale;
    if (t.bias) v += bias;
    if (t.divisor != 1) v /= t.divisor;
    const VI q = Quantized(v, t.y_zero, kSigned ? -128 : 0, kSigned ? 127 : 255);
    uint8_t* c = static_cast<uint8_t*>(t.c) + at;
    if (whole)
      StoreBytes(c, q);
    else
      StoreBytesN(c, q, lanes);
  }
}

}  // namespace mge::cpu::MGE_CPU_ISA
