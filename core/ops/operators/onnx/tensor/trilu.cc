// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_trilu {
namespace {

absl::Status CheckRank(const Node& node, size_t rank) {
  if (rank >= 2) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("Trilu: input of rank {}, expected at least 2", rank),
              {.where = NodePlace(node)});
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank) MGE_RETURN_IF_ERROR(CheckRank(ctx.node(), ctx.input(0).dims.size()));
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(CheckRank(ctx.node(), x.shape().size()));
  int64_t k = 0;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(k, ScalarInt("k", ctx.input(1)));
  }
  bool upper = ctx.attrs().Int("upper") != 0;
  int64_t rows = x.shape()[x.rank() - 2], columns = x.shape()[x.rank() - 1];
  k = std::clamp(k, -rows - 1, columns + 1);  // larger values of k have the same result
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  DispatchCopy(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t column = static_cast<int64_t>(i) % columns, row = static_cast<int64_t>(i) / columns % rows;
      out[i] = (upper ? column - row >= k : column - row <= k) ? in[i] : T{};
    }
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  return g.Set(
      0, g.Of("Trilu", g.has_input(1) ? std::vector<ValueId>{g.dy().id(), g.x(1).id()} : std::vector<ValueId>{g.dy().id()},
              IntAttribute("upper", g.attrs().Int("upper"))));
}

}  // namespace

MGE_OP(trilu) = {
    .name = "Trilu",
    .doc = "The upper or lower triangle of matrices from diagonal k on. Other elements are zero.",
    .inputs = {{"input"}, {"k", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"upper", 1, "not 0: keeps the upper triangle"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 14,
    .examples = {"(T[2,5,7])", "(T[5,5], int64[]<1>) {upper=0}"},
};

}  // namespace mge::op_trilu
