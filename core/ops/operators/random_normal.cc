// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"

namespace mge::op_random_normal {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    return attrs.Float("mean") + attrs.Float("scale") * stream.Normal();
  });
}

}  // namespace

MGE_OP(random_normal) = {
    .name = "RandomNormal",
    .doc = "Random numbers of a normal distribution.",
    .outputs = {{"output"}},
    .attrs = {{"dtype", 1, "the element type of the result"},
              {"mean", 0.0f, "the mean"},
              {"scale", 1.0f, "the standard deviation"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"},
              {"shape", AttrType::kInts, Presence::kRequired, "the shape"}},
    .infer = RandomInfer,
    .eval = Eval,
    .traits = kRandom,
};

}  // namespace mge::op_random_normal
