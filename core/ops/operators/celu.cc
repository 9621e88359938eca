// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_celu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha", 1.0f);
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x < 0 ? alpha * std::expm1(x / alpha) : x;
  });
}

}  // namespace

MGE_OP(celu) = {
    .name = "Celu",
    .doc = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", AttrType::kFloat}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 12,
};

}  // namespace mge::op_celu
