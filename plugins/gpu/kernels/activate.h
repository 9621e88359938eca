// SPDX-License-Identifier: Apache-2.0
// Applies activations on the device. Included by kernels only.
#pragma once

#include <math.h>

#include "plugins/gpu/kernels/activation.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename C>
GPU_DEVICE C Activate(const Activation& a, C x) {
  switch (a.kind) {
    case kRelu: return x < C(0) ? C(0) : x;
    case kClip:
      x = x < static_cast<C>(a.low) ? static_cast<C>(a.low) : x;
      return x > static_cast<C>(a.high) ? static_cast<C>(a.high) : x;
    case kSigmoid: {
      const C e = exp(-fabs(x));
      return x < C(0) ? e / (C(1) + e) : C(1) / (C(1) + e);
    }
    case kTanh: return tanh(x);
    case kGelu: return C(0.5) * x * (C(1) + erf(x * C(0.70710678118654752440)));
    case kGeluTanh: return C(0.5) * x * (C(1) + tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x)));
    case kHardSwish: {
      const C s = x / C(6) + C(0.5);
      return x * (s < C(0) ? C(0) : s > C(1) ? C(1) : s);
    }
    case kLeakyRelu: return x < C(0) ? static_cast<C>(a.low) * x : x;
    default: return x;
  }
}

}  // namespace mge::gpu
