// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_softplus {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::max(x, decltype(x)(0)) + std::log1p(std::exp(-std::abs(x))); });
}

}  // namespace

MGE_OP(softplus) = {
    .name = "Softplus",
    .doc = "log(1 + exp(x)), computed without overflow.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_softplus
