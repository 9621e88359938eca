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

namespace {

// The gradients of the data and the updates from terms.
struct ScatterTerms {
  GradientContext& g;
  const char *scatter, *gather;
  const Attributes& attrs;

  Term Scatter(const Term& data, const Term& updates, const char* reduction) const {
    Attributes all = attrs;
    all.Set("reduction", std::string(reduction));
    return g.Of(scatter, {data.id(), g.x(1).id(), updates.id()}, std::move(all));
  }
  Term Gather(const Term& data) const { return g.Of(gather, {data.id(), g.x(1).id()}, attrs); }
  Term Equals(const Term& a, const Term& b) const {  // 1 or 0
    return g.CastTo(Binary("Equal", a, b), g.dtype());
  }
};

// Divides each gradient among the data and the updates that are equal to the result, as PyTorch does.
absl::Status SelectionGradient(GradientContext& g, const char* scatter, const char* gather, const Attributes& attrs) {
  const ScatterTerms t{g, scatter, gather, attrs};
  const Term kept = t.Equals(g.x(0), g.y()), taken = t.Equals(g.x(2), t.Gather(g.y()));
  const Term count = t.Scatter(kept, taken, "add");
  const Term share = g.dy() / g.Where(count > 0, count, g.Number(1));  // 0 where the result is NaN
  if (g.wants(0)) MGE_RETURN_IF_ERROR(g.Set(0, kept * share));
  return g.wants(2) ? g.Set(2, taken * t.Gather(share)) : absl::OkStatus();
}

// Each factor gets the product of the others: the result divided by it, or the product without it if it is the only 0.
absl::Status ProductGradient(GradientContext& g, const char* scatter, const char* gather, const Attributes& attrs) {
  const ScatterTerms t{g, scatter, gather, attrs};
  const Term one = g.Number(1), zero = g.Number(0);
  auto is_zero = [&](const Term& x) { return Binary("Equal", x, zero).id(); };
  if (g.wants(0)) {
    const Term others = g.Where(is_zero(g.x(0)), one, g.x(0));
    MGE_RETURN_IF_ERROR(g.Set(0, g.dy() * t.Scatter(others, g.x(2), "mul") / others));
  }
  if (!g.wants(2)) return absl::OkStatus();
  const ValueId zeros = is_zero(g.x(2));
  const Term count = t.Gather(t.Scatter(g.Fill(0, g.x(0)), g.CastTo(Term(g, zeros), g.dtype()), "add"));
  const ValueId only = g.Add("And", {zeros, Binary("Equal", count, one).id()});
  const Term without = t.Scatter(g.x(0), g.Where(only, one, g.x(2)), "mul");
  const Term of_zero = t.Gather(g.dy() * without), of_other = t.Gather(g.dy() * g.y()) / g.Where(zeros, one, g.x(2));
  return g.Set(2, g.Where(only, of_zero, of_other));
}

}  // namespace

absl::Status ScatterGradient(GradientContext& g, const char* scatter, const char* gather, const Attributes& attrs) {
  const std::string reduction = ReductionOf(g.attrs());
  if (reduction == "min" || reduction == "max") return SelectionGradient(g, scatter, gather, attrs);
  if (reduction == "mul") return ProductGradient(g, scatter, gather, attrs);
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
