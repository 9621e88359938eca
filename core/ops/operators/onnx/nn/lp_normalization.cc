// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/normalization.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_lp_normalization {
namespace {

absl::Status Check(const Node& node, int64_t rank) {
  int64_t p = node.attrs.Int("p");
  if (p != 1 && p != 2) return Fail(errors::kInvalidNode, fmt::format("p is {}, expected 1 or 2", p));
  return NormalizeAxis(node.attrs.Int("axis"), rank).status();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank) {
    MGE_RETURN_IF_ERROR(Check(ctx.node(), static_cast<int64_t>(ctx.input(0).dims.size())));
  }
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(Check(ctx.node(), x.rank()));
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  bool squares = ctx.attrs().Int("p") == 2;
  AxisSplit split = SplitAtAxis(x.shape(), axis);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t row = 0; row < split.outer * split.inner; ++row) {
      int64_t at = row / split.inner * split.size * split.inner + row % split.inner;
      const T* in = x.Data<T>().data() + at;
      T* out = y->MutableData<T>().data() + at;
      double norm = 0;
      for (int64_t k = 0; k < split.size; ++k) {
        double v = static_cast<double>(in[k * split.inner]);
        norm += squares ? v * v : std::abs(v);
      }
      if (squares) norm = std::sqrt(norm);
      for (int64_t k = 0; k < split.size; ++k) {
        out[k * split.inner] = norm == 0 ? T(0.0f) : Rounded<T>(static_cast<double>(in[k * split.inner]) / norm);
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  const Ints axes = {f.attrs().Int("axis")};
  const bool squares = f.attrs().Int("p") == 2;
  if (f.AppliesInFloat32()) return true;
  Term sum = f.Sum(squares ? f.x() * f.x() : Unary("Abs", f.x()), axes);
  sum = f.Where(sum > 0, sum, f.Number(1));
  f.Result(0, "Div", {f.input(0), (squares ? Unary("Sqrt", sum) : sum).id()});
  return true;
}

}  // namespace

MGE_OP(lp_normalization) = {
    .name = "LpNormalization",
    .doc = "Divides elements by the L1 or L2 norm along an axis. Zeros stay zeros.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = {AxisOf({"axis", -1, "the axis"}), {"p", 2, "the norm"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .body = Body,
    .gradient_body = Body,
    .in_place = {{0, 0}},
    .examples = {"(T[2,5,3])"},
};

}  // namespace mge::op_lp_normalization
