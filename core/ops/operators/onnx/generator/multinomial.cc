// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/ops/families/random.h"

namespace mge::op_multinomial {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kIndex));
  const TensorType& x = ctx.input(0);
  if (x.has_rank) MGE_RETURN_IF_ERROR(RequireRank("the input", x.dims, 2));
  int64_t samples = ctx.attrs().Int("sample_size");
  if (samples < 0) return ctx.Invalid(fmt::format("sample_size is {}; it must not be negative", samples));
  ctx.SetOutput(0, MakeType(dtype, {x.has_rank ? x.dims[0] : kUnknownDim, samples}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kIndex));
  MGE_RETURN_IF_ERROR(RequireRank("the input", x.shape(), 2));
  int64_t samples = ctx.attrs().Int("sample_size");
  if (samples < 0) return ctx.Invalid(fmt::format("sample_size is {}; it must not be negative", samples));
  int64_t batch = x.shape()[0], classes = x.shape()[1];
  if (classes == 0 && batch * samples > 0) return ctx.Invalid("the input has no classes");
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, {batch, samples}));
  RandomStream stream(ctx.seed());
  std::vector<double> cumulative(classes);
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t b = 0; b < batch; ++b) {
      const T* logits = x.Data<T>().data() + b * classes;
      double top = -INFINITY, sum = 0;
      for (int64_t c = 0; c < classes; ++c) top = std::max(top, static_cast<double>(logits[c]));
      for (int64_t c = 0; c < classes; ++c) cumulative[c] = sum += std::exp(static_cast<double>(logits[c]) - top);
      for (int64_t s = 0; s < samples; ++s) {
        auto at = std::upper_bound(cumulative.begin(), cumulative.end(), stream.Uniform() * sum);
        int64_t chosen = std::min<int64_t>(at - cumulative.begin(), classes - 1);
        if (dtype == DType::kI32) {
          y->MutableData<int32_t>()[b * samples + s] = static_cast<int32_t>(chosen);
        } else {
          y->MutableData<int64_t>()[b * samples + s] = chosen;
        }
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(multinomial) = {
    .name = "Multinomial",
    .doc = "Random classes with probabilities given by unnormalized logarithms.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", 6, "the element type of the result"},
              {"sample_size", 1, "the number of samples"},
              {"seed", AttrType::kFloat, Presence::kOptional, "the seed; absent: that of the run"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kRandom,
    .since = 7,
};

}  // namespace mge::op_multinomial
