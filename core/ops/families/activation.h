// SPDX-License-Identifier: Apache-2.0
// The activation that a fused operator applies to its result.
#pragma once

#include <string>

#include "core/ops/function_body.h"

namespace mge {

// Computes output 0 as the activation of `x`, whose element type is `type`. `parameters` are attributes of the ONNX operator
// with the activation's name; Clip has the limits alpha and beta. An empty name stands for no activation.
absl::Status AddActivation(FunctionBody& f, ValueId x, DType type, const std::string& name, const Attributes& parameters);

// Returns the parameters from the attributes activation_alpha, activation_beta and activation_gamma.
Attributes ActivationParameters(const Attributes& attrs);

// Returns the parameters of an activation from a list in the order alpha, beta, gamma.
Attributes ActivationParameters(const std::string& name, const Floats& list);

}  // namespace mge
