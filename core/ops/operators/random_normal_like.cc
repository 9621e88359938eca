// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"
#include "core/ops/gradient.h"

namespace mge::op_random_normal_like {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    return attrs.Float("mean", 0.0f) + attrs.Float("scale", 1.0f) * stream.Normal();
  });
}

}  // namespace

MGE_OP(random_normal_like) = {
    .name = "RandomNormalLike",
    .doc = "Random numbers of a normal distribution, in the shape of the input.",
    .inputs = {{"input", kFixedSize}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", AttrType::kInt},
              {"mean", AttrType::kFloat},
              {"scale", AttrType::kFloat},
              {"seed", AttrType::kFloat}},
    .infer = RandomInfer,
    .eval = Eval,
    .gradient = ZeroGradient,
    .traits = kRandom,
};

}  // namespace mge::op_random_normal_like
