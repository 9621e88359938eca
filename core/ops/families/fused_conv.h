// SPDX-License-Identifier: Apache-2.0
// Convolutions of com.microsoft with an addend Z and an activation.
#pragma once

#include <string>

#include "core/ops/families/activation.h"
#include "core/ops/families/conv_geometry.h"

namespace mge {

inline constexpr InputList kFusedConvInputs = {
    {"X", kFloating}, {"W", kFloating}, {"B", kFloating, Arity::kOptional}, {"Z", kFloating, Arity::kOptional}};
inline constexpr AttrList kFusedConvAttrs =
    WithConvAttrs({{"activation", AttrType::kText, Presence::kOptional, "the activation: Relu, Sigmoid, ...; absent: none"},
                   {"activation_params", AttrType::kFloats, Presence::kOptional, "absent: the defaults of the activation"}});

// Computes output 0 from the result of the convolution.
inline absl::Status AddFusedConvResult(FunctionBody& f, ValueId y) {
  const std::string activation = f.attrs().Text("activation");
  const Attributes parameters = ActivationParameters(activation, f.attrs().FloatList("activation_params"));
  return AddActivation(f, f.Plus(y, f.input(3)), f.dtype(0), activation, parameters);
}

}  // namespace mge
