// SPDX-License-Identifier: Apache-2.0
// Activations that a product or a convolution applies before it stores a result. Used by kernels and operators.
#pragma once

#include <stdint.h>

namespace mge::gpu {

enum ActivationKind : int32_t { kNoActivation, kRelu, kClip, kSigmoid, kTanh, kGelu, kGeluTanh, kHardSwish, kLeakyRelu };

// An activation and its parameters.
struct Activation {
  int32_t kind;
  float low, high;  // kClip: the limits; kLeakyRelu: low is the slope
};

}  // namespace mge::gpu
