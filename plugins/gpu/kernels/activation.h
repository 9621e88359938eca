// SPDX-License-Identifier: Apache-2.0
// What a product or a convolution may do to a result before it is stored. Read by kernels and operators.
#pragma once

#include <stdint.h>

namespace mge::gpu {

enum ActivationKind : int32_t { kNoActivation, kRelu, kClip, kSigmoid, kTanh, kGelu, kGeluTanh, kHardSwish, kLeakyRelu };

struct Activation {
  int32_t kind;
  float low, high;  // kClip: the limits; kLeakyRelu: the slope in low
};

}  // namespace mge::gpu
