// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_acos {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::acos(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, -g.dy() / Unary("Sqrt", 1 - g.x() * g.x())); }

}  // namespace

MGE_OP(acos) = {
    .name = "Acos",
    .doc = "Inverse cosine, in radians.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 7,
};

}  // namespace mge::op_acos
