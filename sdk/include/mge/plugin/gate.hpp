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

// The name of an activation function in lower case, the parameters that it takes, and their defaults.
struct GateFunctionRow {
  const char* name;
  bool takes_alpha, takes_beta;
  float alpha, beta;
};
// One row per GateFunction, in its order.
inline constexpr GateFunctionRow kGateFunctions[] = {
    {"relu", false, false, 0, 0},         {"tanh", false, false, 0, 0},
    {"sigmoid", false, false, 0, 0},      {"affine", true, true, 1, 0},
    {"leakyrelu", true, false, 0.01f, 0}, {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1},     {"hardsigmoid", true, true, 0.2f, 0.5f},
    {"elu", true, false, 1, 0},           {"softsign", false, false, 0, 0},
    {"softplus", false, false, 0, 0}};

// An activation function with its parameters.
struct GateActivation {
  GateFunction function = GateFunction::kTanh;
  float alpha = 0, beta = 0;
};

}  // namespace mge
