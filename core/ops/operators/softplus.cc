// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_softplus {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::max(x, decltype(x)(0)) + std::log1p(std::exp(-std::abs(x))); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() * Unary("Sigmoid", g.x())); }

}  // namespace

MGE_OP(softplus) = {
    .name = "Softplus",
    .doc = "log(1 + exp(x)), computed without overflow.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_softplus
