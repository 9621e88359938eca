// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/gelu.h"

namespace mge::op_gelu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  std::string approximate = ctx.attrs().Text("approximate", "none");
  if (approximate == "none") return EvalUnaryFloating(ctx, [](auto x) { return Gelu(x); });
  if (approximate == "tanh") return EvalUnaryFloating(ctx, [](auto x) { return GeluTanh(x); });
  return ctx.Invalid(fmt::format("attribute 'approximate' is '{}', expected 'none' or 'tanh'", approximate));
}

}  // namespace

MGE_OP(gelu) = {
    .name = "Gelu",
    .doc = "x times the Gaussian distribution function of x. With approximate = tanh, the approximation by tanh.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"approximate", AttrType::kText}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 20,
    .examples = {"(T[3,37])", "(T[41]) {approximate=\"tanh\"}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"},
};

}  // namespace mge::op_gelu
