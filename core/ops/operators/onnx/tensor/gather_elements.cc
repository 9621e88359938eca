// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/families/scatter.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_gather_elements {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& indices = ctx.input(1);
  if (x.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
    if (indices.has_rank) MGE_RETURN_IF_ERROR(RequireIndicesWithin(x.dims, indices.dims, axis));
  }
  TensorType out = indices;
  out.dtype = x.dtype;
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  MGE_RETURN_IF_ERROR(RequireIndicesWithin(x.shape(), indices.shape(), axis));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), indices.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  IndexView index(indices);
  Shape strides = Strides(x.shape());
  Shape at(x.rank(), 0);
  int64_t i = 0;
  absl::Status status;
  DispatchCopy(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    do {
      int64_t j = index[i];
      status = CheckIndex(ctx, "index", x.shape()[axis], &j);
      if (!status.ok()) return;
      int64_t from = j * strides[axis];
      for (int64_t d = 0; d < x.rank(); ++d) from += d == axis ? 0 : at[d] * strides[d];
      out[i++] = in[from];
    } while (NextIndex(indices.shape(), std::span<int64_t>(at.data(), at.size())));
  });
  return status;
}

absl::Status Gradient(GradientContext& g) {
  Attributes attrs = IntAttribute("axis", g.attrs().Int("axis"));
  attrs.Set("reduction", std::string("add"));
  return g.Set(0, g.Of("ScatterElements", {g.Fill(0, g.x()).id(), g.x(1).id(), g.dy().id()}, std::move(attrs)));
}

}  // namespace

MGE_OP(gather_elements) = {.name = "GatherElements",
                           .doc = "One element for each index: the index replaces the coordinate along `axis`.",
                           .inputs = {{"data"}, {"indices", kIndex}},
                           .outputs = {{"output"}},
                           .attrs = {AxisOf({"axis", 0, "the axis"})},
                           .infer = Infer,
                           .eval = Eval,
                           .gradient = Gradient,
                           .since = 11,
                           .examples = {"(T[3,4], int64[2,4]<0,1,2,0,2,1,0,1>)"}};

}  // namespace mge::op_gather_elements
