// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_softsign {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return x / (1 + std::abs(x)); });
}

}  // namespace

MGE_OP(softsign) = {
    .name = "Softsign",
    .doc = "x / (1 + |x|).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_softsign
