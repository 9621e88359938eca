// SPDX-License-Identifier: Apache-2.0
// Activations of recurrent operators. Includes no C++ library header, so that vector code and device compilers can include
// it.
#pragma once

#include <stdint.h>

namespace mge {

// The activation functions of recurrent operators.
enum class GateFunction : int32_t {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

// An activation function with its parameters.
struct GateActivation {
  GateFunction function = GateFunction::kTanh;
  float alpha = 0, beta = 0;
};

}  // namespace mge
