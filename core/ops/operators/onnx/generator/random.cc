// SPDX-License-Identifier: Apache-2.0
// Random numbers of a distribution, in a given shape or in that of a tensor.
#include "core/ops/families/random.h"

#include "core/ops/gradient.h"

namespace mge::op_random {
namespace {

absl::Status EvalNormal(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    return attrs.Float("mean") + attrs.Float("scale") * stream.Normal();
  });
}

absl::Status EvalUniform(EvalContext& ctx) {
  return EvalRandom(ctx, [](RandomStream& stream, const Attributes& attrs) {
    double low = attrs.Float("low"), high = attrs.Float("high");
    return low + (high - low) * stream.Uniform();
  });
}

constexpr Attr kSeed = {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"};

constexpr OpDef Row(std::string_view name, std::string_view doc, EvalFn eval, const Attr& a, const Attr& b) {
  return {.name = name,
          .doc = doc,
          .outputs = {{"output"}},
          .attrs = {{"dtype", 1, "the element type of the result"},
                    a,
                    b,
                    kSeed,
                    {"shape", AttrType::kInts, Presence::kRequired, "the shape"}},
          .infer = RandomInfer,
          .eval = eval,
          .traits = kRandom};
}
constexpr OpDef LikeRow(std::string_view name, std::string_view doc, EvalFn eval, const Attr& a, const Attr& b) {
  OpDef row = Row(name, doc, eval, a, b);
  row.inputs = {{"input", kFixedSize}};
  row.attrs = {{"dtype", AttrType::kInt, Presence::kOptional, "the element type of the result; absent: that of the input"},
               a,
               b,
               kSeed};
  row.gradient = ZeroGradient;
  return row;
}

constexpr Attr kMean = {"mean", 0.0f, "the mean"}, kScale = {"scale", 1.0f, "the standard deviation"},
               kLow = {"low", 0.0f, "the lower limit"}, kHigh = {"high", 1.0f, "the upper limit"};

constexpr OpDef kRows[] = {
    Row("RandomNormal", "Random numbers of a normal distribution.", EvalNormal, kMean, kScale),
    LikeRow("RandomNormalLike", "Random numbers of a normal distribution, in the shape of the input.", EvalNormal, kMean,
            kScale),
    Row("RandomUniform", "Random numbers of a uniform distribution over [low, high).", EvalUniform, kLow, kHigh),
    LikeRow("RandomUniformLike", "Random numbers of a uniform distribution over [low, high), in the shape of the input.",
            EvalUniform, kLow, kHigh),
};

}  // namespace

MGE_OPS(random) = kRows;

}  // namespace mge::op_random
