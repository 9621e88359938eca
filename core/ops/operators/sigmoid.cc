// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_sigmoid {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) {
    using T = decltype(x);
    T e = std::exp(-std::abs(x));  // at most 1, so that neither branch overflows
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
  });
}

}  // namespace

MGE_OP(sigmoid) = {
    .name = "Sigmoid",
    .doc = "1 / (1 + exp(-x)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_sigmoid
