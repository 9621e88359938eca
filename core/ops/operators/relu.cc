// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_relu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.Where(g.y() > 0, g.dy(), g.Number(0))); }

}  // namespace

MGE_OP(relu) = {.name = "Relu",
                .doc = "max(x, 0).",
                .inputs = {{"X", kNumeric}},
                .outputs = {{"Y"}},
                .infer = SameTypeAsFirst,
                .eval = Eval,
                .upgrade = DropConsumedInputs,
                .gradient = Gradient,
                .in_place = {{0, 0}},
                .traits = kElementwise};

}  // namespace mge::op_relu
