// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_round {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::nearbyint(x); });
}

}  // namespace

MGE_OP(round) = {
    .name = "Round",
    .doc = "The nearest integer. Halves are rounded to even.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = ZeroGradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 11,
};

}  // namespace mge::op_round
