// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"

#include "core/ops/op_helpers.h"

namespace mge {

namespace {

// Returns how elements are joined. Scatter, the older form of ScatterElements, replaces them: it has no attribute for it.
std::string ReductionOf(const Attributes& attrs) { return attrs.Has("reduction") ? attrs.Text("reduction") : "none"; }

}  // namespace

absl::Status CheckReduction(const Attributes& attrs) {
  if (!attrs.Has("reduction")) return absl::OkStatus();
  return ReadChoice(attrs, "reduction", {"none", "add", "mul", "max", "min"}).status();
}

absl::Status RequireIndicesWithin(const Shape& data, const Shape& indices, int64_t axis) {
  MGE_RETURN_IF_ERROR(RequireRank("indices", indices, data.size()));
  for (size_t d = 0; d < data.size(); ++d) {
    if (static_cast<int64_t>(d) == axis || data[d] < 0 || indices[d] <= data[d]) continue;
    return Fail(errors::kInvalidNode, fmt::format("indices of shape {} exceed the data's shape {} in dimension {}",
                                                  ShapeText(indices), ShapeText(data), d));
  }
  return absl::OkStatus();
}

absl::Status InferScatterElements(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(CheckReduction(ctx.attrs()));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  if (x.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
    if (ctx.input(1).has_rank) MGE_RETURN_IF_ERROR(RequireIndicesWithin(x.dims, ctx.input(1).dims, axis));
  }
  if (ctx.input(1).has_rank && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(RequireShape("updates", ctx.input(2).dims, ctx.input(1).dims));
  }
  ctx.SetOutput(0, x);
  return absl::OkStatus();
}

absl::Status EvalScatterElements(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  MGE_RETURN_IF_ERROR(CheckReduction(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  MGE_RETURN_IF_ERROR(RequireIndicesWithin(x.shape(), indices.shape(), axis));
  MGE_RETURN_IF_ERROR(RequireShape("updates", updates.shape(), indices.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  CopyElements(x, 0, *y, 0, x.elements());
  if (indices.elements() == 0) return absl::OkStatus();
  IndexView index(indices);
  Shape strides = Strides(x.shape());
  Shape at(x.rank(), 0);
  int64_t i = 0;
  absl::Status status;
  MGE_RETURN_IF_ERROR(DispatchReduction(ctx, x.dtype(), ReductionOf(ctx.attrs()), [&](auto tag, auto join) {
    using T = typename decltype(tag)::type;
    auto in = updates.Data<T>();
    auto out = y->MutableData<T>();
    do {
      int64_t j = index[i];
      status = CheckIndex(ctx, "index", x.shape()[axis], &j);
      if (!status.ok()) return;
      int64_t to = j * strides[axis];
      for (int64_t d = 0; d < x.rank(); ++d) to += d == axis ? 0 : at[d] * strides[d];
      out[to] = join(out[to], in[i++]);
    } while (NextIndex(indices.shape(), std::span<int64_t>(at.data(), at.size())));
  }));
  return status;
}

absl::Status ScatterGradient(GradientContext& g, const char* scatter, const char* gather, const Attributes& attrs) {
  const std::string reduction = ReductionOf(g.attrs());
  if (reduction != "none" && reduction != "add")
    return g.Unsupported(fmt::format("{} with reduction {}", scatter, reduction));
  if (g.wants(0)) {
    const auto kept = [&] { return g.Of(scatter, {g.dy().id(), g.x(1).id(), g.Fill(0, g.x(2)).id()}, attrs); };
    MGE_RETURN_IF_ERROR(g.Set(0, reduction == "add" ? g.dy() : kept()));
  }
  return g.wants(2) ? g.Set(2, g.Of(gather, {g.dy().id(), g.x(1).id()}, attrs)) : absl::OkStatus();
}

absl::Status ScatterElementsGradient(GradientContext& g) {
  return ScatterGradient(g, "ScatterElements", "GatherElements", IntAttribute("axis", g.attrs().Int("axis")));
}

}  // namespace mge
