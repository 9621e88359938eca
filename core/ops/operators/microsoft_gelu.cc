// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/gelu.h"

namespace mge::op_microsoft_gelu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return Gelu(x); });
}

}  // namespace

MGE_OP(microsoft_gelu) = {
    .name = "Gelu",
    .domain = "com.microsoft",
    .doc = "x times the Gaussian distribution function of x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[3,37])", "(T[41]) {approximate=\"tanh\"}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"},
};

}  // namespace mge::op_microsoft_gelu
