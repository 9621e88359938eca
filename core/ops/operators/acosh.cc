// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_acosh {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::acosh(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() / Unary("Sqrt", g.x() * g.x() - 1)); }

}  // namespace

MGE_OP(acosh) = {
    .name = "Acosh",
    .doc = "Inverse hyperbolic cosine.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 9,
    .examples = {"(T[3,7]@1:4)", "(T[70001]@1:4)", "(T[67]@special)"},
};

}  // namespace mge::op_acosh
