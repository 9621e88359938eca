// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"

namespace mge::op_random_uniform {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    double low = attrs.Float("low"), high = attrs.Float("high");
    return low + (high - low) * stream.Uniform();
  });
}

}  // namespace

MGE_OP(random_uniform) = {
    .name = "RandomUniform",
    .doc = "Random numbers of a uniform distribution over [low, high).",
    .outputs = {{"output"}},
    .attrs = {{"dtype", 1, "the element type of the result"},
              {"low", 0.0f, "the lower limit"},
              {"high", 1.0f, "the upper limit"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"},
              {"shape", AttrType::kInts, Presence::kRequired, "the shape"}},
    .infer = RandomInfer,
    .eval = Eval,
    .traits = kRandom,
};

}  // namespace mge::op_random_uniform
