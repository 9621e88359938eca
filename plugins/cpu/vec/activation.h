// SPDX-License-Identifier: Apache-2.0
// Activations of vectors. Included by vec/*.cc only.
#pragma once

#include "vec/gemm.h"
#include "vec/math.h"

namespace mge::cpu::MGE_CPU_ISA {

// Limits x; NaN stays NaN.
MGE_INLINE VF Clip(VF x, VF lo, VF hi) { return MinRaw(hi, MaxRaw(lo, x)); }

// Applies any activation except kNone and kClip.
MGE_INLINE VF Activate(VF x, Activation activation, float slope) {
  switch (activation) {
    case Activation::kGelu: return 0.5f * x * (1.0f + Erf(x * 0.707106781f));
    case Activation::kGeluTanh: return 0.5f * x * (1.0f + Tanh(0.797884561f * Fma(x * x * x, Splat(0.044715f), x)));
    case Activation::kSigmoid: return Sigmoid(x);
    case Activation::kTanh: return Tanh(x);
    case Activation::kHardSwish: return x * Clip(Fma(x, Splat(1.0f / 6), Splat(0.5f)), Splat(0.0f), Splat(1.0f));
    case Activation::kSwish: return x * Sigmoid(x);
    case Activation::kLeakyRelu: return x < 0.0f ? x * slope : x;
    case Activation::kNone:
    case Activation::kClip: break;
  }
  return x;
}

template <Activation A>
static void ActivateRows(float* c, int64_t ldc, int64_t m, int64_t n, float slope) {
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    int64_t j = 0;
    for (; j + kF <= n; j += kF) Store(c + j, Activate(Load(c + j), A, slope));
    if (j < n) StoreN(c + j, Activate(LoadN(c + j, static_cast<int>(n - j)), A, slope), static_cast<int>(n - j));
  }
}

// Applies the activation to the first n of every ldc floats, m times. Does nothing for kNone and kClip, which the loops of
// the sums apply.
static inline void ActivateBlock(Activation a, float* c, int64_t ldc, int64_t m, int64_t n, float slope) {
  switch (a) {
    case Activation::kGelu: return ActivateRows<Activation::kGelu>(c, ldc, m, n, slope);
    case Activation::kGeluTanh: return ActivateRows<Activation::kGeluTanh>(c, ldc, m, n, slope);
    case Activation::kSigmoid: return ActivateRows<Activation::kSigmoid>(c, ldc, m, n, slope);
    case Activation::kTanh: return ActivateRows<Activation::kTanh>(c, ldc, m, n, slope);
    case Activation::kHardSwish: return ActivateRows<Activation::kHardSwish>(c, ldc, m, n, slope);
    case Activation::kSwish: return ActivateRows<Activation::kSwish>(c, ldc, m, n, slope);
    case Activation::kLeakyRelu: return ActivateRows<Activation::kLeakyRelu>(c, ldc, m, n, slope);
    case Activation::kNone:
    case Activation::kClip: break;
  }
}

}  // namespace mge::cpu::MGE_CPU_ISA
