// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/optimizer.h"

#include "fmt/format.h"

namespace mge {

absl::Status InferOptimizer(InferContext& ctx, int groups) {
  const int tensors = ctx.input_count() - 2, sets = tensors / groups;
  if (sets == 0 || tensors % groups != 0) {
    return ctx.Invalid(fmt::format("{} tensors follow R and T; {} are required for each updated tensor", tensors, groups));
  }
  if (ctx.output_count() != (groups - 1) * sets) {
    return ctx.Invalid(
        fmt::format("{} outputs; {} updated tensors require {}", ctx.output_count(), sets, (groups - 1) * sets));
  }
  for (int i = 2; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
  }
  for (int s = 0; s < sets; ++s) {
    const TensorType& x = ctx.input(2 + s);
    for (int group = 0; group < groups; ++group) {
      const int i = 2 + group * sets + s;
      const TensorType& other = ctx.input(i);
      MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {2 + s, i}));
      if (x.has_rank && other.has_rank) {
        MGE_RETURN_IF_ERROR(RequireShape(fmt::format("input {}", i), other.dims, x.dims));
      }
      // The gradient (group 1) has no output.
      if (group != 1) ctx.SetOutput((group == 0 ? 0 : group - 1) * sets + s, x);
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
