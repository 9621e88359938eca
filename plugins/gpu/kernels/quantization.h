// SPDX-License-Identifier: Apache-2.0
// Functions that quantize and dequantize one element. Included by kernels only.
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

// Rounds to the nearest integer, ties to even; |x| is less than 2^22. The sum's last bit is worth 1.
GPU_DEVICE int32_t NearestInteger(float x) { return BitCast<int32_t>(x + 12582912.0f) - 0x4b400000; }

// Returns x rounded to the nearest integer, plus the zero point, in [lowest, highest], whose limits have at most 16 bits.
// Values out of range become the nearest limit; NaN becomes the lowest value.
GPU_DEVICE int32_t SaturatedTo(int32_t lowest, int32_t highest, float x, int32_t zero) {
  const float low = static_cast<float>(lowest - zero), high = static_cast<float>(highest - zero);
  x = x > low ? x : low;
  return NearestInteger(x < high ? x : high) + zero;
}
template <typename Q>
GPU_DEVICE Q Saturated(float x, int32_t zero) {
  constexpr bool kSigned = static_cast<Q>(-1) < Q(0);
  constexpr int32_t kLowest = kSigned ? -(1 << (8 * sizeof(Q) - 1)) : 0;
  return static_cast<Q>(SaturatedTo(kLowest, kLowest + (1 << (8 * sizeof(Q))) - 1, x, zero));
}

// Returns a quantized element. x, the scale and their quotient are rounded to D, a floating type of at most 32 bits.
template <typename Q, typename D>
GPU_DEVICE Q Quantized(float x, float scale, int32_t zero) {
  const auto rounded = [](float v) { return Widen(Narrow<D>::Of(v)); };
  return Saturated<Q>(rounded(rounded(x) / rounded(scale)), zero);
}

template <typename Q>
GPU_DEVICE float Dequantized(Q x, float scale, Q zero) {
  if constexpr (sizeof(Q) < 4) {
    return static_cast<float>(static_cast<int32_t>(x) - static_cast<int32_t>(zero)) * scale;
  } else {
    return static_cast<float>(static_cast<int64_t>(x) - static_cast<int64_t>(zero)) * scale;
  }
}

}  // namespace mge::gpu
