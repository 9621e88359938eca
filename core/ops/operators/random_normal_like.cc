// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"
#include "core/ops/gradient.h"

namespace mge::op_random_normal_like {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    return attrs.Float("mean") + attrs.Float("scale") * stream.Normal();
  });
}

}  // namespace

MGE_OP(random_normal_like) = {
    .name = "RandomNormalLike",
    .doc = "Random numbers of a normal distribution, in the shape of the input.",
    .inputs = {{"input", kFixedSize}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", AttrType::kInt, Presence::kOptional, "the element type of the result; absent: that of the input"},
              {"mean", 0.0f, "the mean"},
              {"scale", 1.0f, "the standard deviation"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"}},
    .infer = RandomInfer,
    .eval = Eval,
    .gradient = ZeroGradient,
    .traits = kRandom,
};

}  // namespace mge::op_random_normal_like
