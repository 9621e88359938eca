// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"
#include "core/ops/gradient.h"

namespace mge::op_random_uniform_like {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    double low = attrs.Float("low"), high = attrs.Float("high");
    return low + (high - low) * stream.Uniform();
  });
}

}  // namespace

MGE_OP(random_uniform_like) = {
    .name = "RandomUniformLike",
    .doc = "Random numbers of a uniform distribution over [low, high), in the shape of the input.",
    .inputs = {{"input", kFixedSize}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", AttrType::kInt, Presence::kOptional, "the element type of the result; absent: that of the input"},
              {"low", 0.0f, "the lower limit"},
              {"high", 1.0f, "the upper limit"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"}},
    .infer = RandomInfer,
    .eval = Eval,
    .gradient = ZeroGradient,
    .traits = kRandom,
};

}  // namespace mge::op_random_uniform_like
