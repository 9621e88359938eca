// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/gelu.h"

#include <numbers>

#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"

namespace mge::op_gelu {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadChoice(ctx.attrs(), "approximate", {"none", "tanh"}).status());
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  if (ctx.attrs().Text("approximate") == "none") return EvalUnaryFloating(ctx, [](auto x) { return Gelu(x); });
  return EvalUnaryFloating(ctx, [](auto x) { return GeluTanh(x); });
}

absl::Status Gradient(GradientContext& g) {
  const Term x = g.x();
  if (g.attrs().Text("approximate") == "none") {
    const Term density = Unary("Exp", x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return g.Give(0, g.dy() * (0.5 * (1 + Unary("Erf", x / std::numbers::sqrt2)) + x * density));
  }
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Term t = Unary("Tanh", x * (1 + x * x * cubic) * scale);
  return g.Give(0, g.dy() * (0.5 * (1 + t) + x * (1 - t * t) * (1 + x * x * (3 * cubic)) * (0.5 * scale)));
}

}  // namespace

MGE_OP(gelu) = {
    .name = "Gelu",
    .doc = "x times the Gaussian distribution function of x. With approximate = tanh, the approximation by tanh.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"approximate", "none", "none or tanh"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 20,
    .examples = {"(T[3,37])", "(T[41]) {approximate=\"tanh\"}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"},
};

}  // namespace mge::op_gelu
