// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"
#include "core/ops/gradient.h"

namespace mge::op_bernoulli {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  if (ctx.attrs().Has("dtype")) {
    MGE_ASSIGN_OR_RETURN(type.dtype, ReadDType(ctx.attrs(), "dtype", kFixedSize, type.dtype));
  }
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kFixedSize, x.dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, x.shape()));
  RandomStream stream(ctx.seed());
  bool valid = true;
  DispatchFloating(x.dtype(), [&](auto in_tag) {
    auto p = x.Data<typename decltype(in_tag)::type>();
    DispatchFixedSize(dtype, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      auto out = y->MutableData<Out>();
      for (size_t i = 0; i < out.size(); ++i) {
        double probability = static_cast<double>(p[i]);
        valid = valid && probability >= 0 && probability <= 1;
        out[i] = Out(stream.Uniform() < probability ? 1.0f : 0.0f);
      }
    });
  });
  return valid ? absl::OkStatus() : ctx.Invalid("a probability is outside of [0, 1]");
}

}  // namespace

MGE_OP(bernoulli) = {
    .name = "Bernoulli",
    .doc = "1 with the probability that the input gives, else 0.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", AttrType::kInt, Presence::kOptional, "the element type of the result; absent: that of the input"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ZeroGradient,
    .traits = kRandom,
    .since = 15,
};

}  // namespace mge::op_bernoulli
