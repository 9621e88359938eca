// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_atanh {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::atanh(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() / (1 - g.x() * g.x())); }

}  // namespace

MGE_OP(atanh) = {
    .name = "Atanh",
    .doc = "Inverse hyperbolic tangent.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 9,
};

}  // namespace mge::op_atanh
