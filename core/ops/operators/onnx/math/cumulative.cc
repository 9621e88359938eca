// SPDX-License-Identifier: Apache-2.0
// Running sums and products along an axis.
#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/movement.h"
#include "core/ops/families/reduce.h"
#include "core/ops/gradient.h"

namespace mge::op_cumulative {
namespace {

absl::Status Infer(InferContext& ctx) {
  if (auto axis = KnownInts(ctx, 1); axis && ctx.input(0).has_rank) {
    if (axis->size() != 1) return ctx.Invalid(fmt::format("input axis has {} elements, expected 1", axis->size()));
    MGE_RETURN_IF_ERROR(NormalizeAxis((*axis)[0], static_cast<int64_t>(ctx.input(0).dims.size())).status());
  }
  return SameTypeAsFirst(ctx);
}

// Sets each element to step(...step(start, x)..., x) over the elements before it, with itself unless "exclusive".
template <typename Step>
absl::Status EvalCumulative(EvalContext& ctx, int start, Step step) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, ScalarInt("axis", ctx.input(1)));
  MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, x.rank()));
  bool exclusive = ctx.attrs().Int("exclusive") != 0, reverse = ctx.attrs().Int("reverse") != 0;
  AxisSplit split = SplitAtAxis(x.shape(), axis);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Accumulator<T>;
    const T* in = x.Data<T>().data();
    T* out = y->MutableData<T>().data();
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        A total = static_cast<A>(start);
        for (int64_t k = 0; k < split.size; ++k) {
          int64_t at = (o * split.size + (reverse ? split.size - 1 - k : k)) * split.inner + i;
          A next = step(total, static_cast<A>(in[at]));
          out[at] = Convert<T>(exclusive ? total : next);
          total = next;
        }
      }
    }
  });
  return absl::OkStatus();
}

absl::Status SumGradient(GradientContext& g) {
  Attributes attrs = IntAttribute("exclusive", g.attrs().Int("exclusive"));
  attrs.Set("reverse", int64_t{g.attrs().Int("reverse") == 0});
  return g.Set(0, g.Of("CumSum", {g.dy().id(), g.x(1).id()}, std::move(attrs)));
}

constexpr OpDef Row(std::string_view name, std::string_view doc, OpDef more) {
  more.name = name;
  more.doc = doc;
  more.inputs = {{"x", kNumeric}, {"axis", kIndex}};
  more.outputs = {{"y"}};
  more.attrs = {{"exclusive", 0, "not 0: an element is not in its own sum"}, {"reverse", 0, "not 0: from the end"}};
  more.infer = Infer;
  more.in_place = {{0, 0}};
  return more;
}

constexpr OpDef kRows[] = {
    Row("CumProd", "Running product along an axis. Integers wrap around.",
        {.eval =
             [](EvalContext& ctx) {
               return EvalCumulative(ctx, 1, [](auto product, auto x) { return MulWrapping(product, x); });
             },
         .since = 26,
         .examples = {"(T[3,7]@0.5:1.5, int64[]<1>)", "(T[3,7]@0.5:1.5, int64[]<0>) {exclusive=1, reverse=1}"}}),
    Row("CumSum", "Running sum along an axis. Integers wrap around.",
        {.eval =
             [](EvalContext& ctx) { return EvalCumulative(ctx, 0, [](auto sum, auto x) { return AddWrapping(sum, x); }); },
         .gradient = SumGradient,
         .since = 11,
         .examples = {"(T[3,7], int64[]<1>)", "(T[3,7], int64[]<0>) {exclusive=1, reverse=1}"}}),
};

}  // namespace

MGE_OPS(cumulative) = kRows;

}  // namespace mge::op_cumulative
