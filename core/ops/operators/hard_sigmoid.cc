// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/unary.h"

namespace mge::op_hard_sigmoid {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha", 0.2f);
  float attr_beta = ctx.attrs().Float("beta", 0.5f);
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    T beta = attr_beta;
    return std::clamp(alpha * x + beta, T(0), T(1));  // NaN stays NaN
  });
}

}  // namespace

MGE_OP(hard_sigmoid) = {
    .name = "HardSigmoid",
    .doc = "max(0, min(1, alpha * x + beta)). NaN stays NaN.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", AttrType::kFloat}, {"beta", AttrType::kFloat}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_hard_sigmoid
