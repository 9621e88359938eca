// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_selu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  float attr_gamma = ctx.attrs().Float("gamma");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    T gamma = attr_gamma;
    return gamma * (x > 0 ? x : alpha * std::expm1(x));
  });
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 6) return absl::OkStatus();
  node.attrs.Remove("consumed_inputs");
  if (!node.attrs.Has("alpha")) node.attrs.Set("alpha", 1.6732f);
  if (!node.attrs.Has("gamma")) node.attrs.Set("gamma", 1.0507f);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  const double alpha = g.attrs().Float("alpha");
  const double gamma = g.attrs().Float("gamma");
  return g.Give(0, g.dy() * g.Where(g.x() > 0, g.Number(gamma), g.y() + alpha * gamma));
}

}  // namespace

MGE_OP(selu) = {
    .name = "Selu",
    .doc = "gamma * (x if it is positive, else alpha * (exp(x) - 1)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.67326319217681884765625f, "the factor"},
              {"gamma", 1.05070102214813232421875f, "the second factor"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_selu
