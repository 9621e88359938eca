// SPDX-License-Identifier: Apache-2.0
// Sums and extrema of any number of inputs, with broadcasting.
#include <functional>
#include <vector>

#include "core/ops/eval_context.h"
#include "core/ops/families/binary.h"
#include "core/ops/families/unary.h"
#include "core/ops/infer_checks.h"

namespace mge::op_variadic {
namespace {

// Computes y = finish(f(f(x0, x1), x2)...) in the compute type.
template <typename Dispatch, typename F, typename Finish = std::identity>
absl::Status EvalVariadic(EvalContext& ctx, Dispatch dispatch, F f, Finish finish = {}) {
  const Tensor& first = ctx.input(0);
  Shape shape = first.shape();
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.input(i).dtype() != first.dtype()) return ctx.Invalid("inputs have different types");
    MGE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, ctx.input(i).shape()));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, first.dtype(), std::move(shape)));
  absl::Status status;
  bool known = dispatch(first.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    absl::StatusOr<Tensor> scratch = Scratch<C>(ctx, y->elements());
    if (!scratch.ok()) {
      status = scratch.status();
      return;
    }
    std::span<C> sum = scratch->template MutableData<C>();
    for (int i = 0; i < ctx.input_count(); ++i) {
      auto in = ctx.input(i).template Data<T>();
      ForBroadcast(y->shape(), ctx.input(i).shape(), y->shape(), [&](int64_t out, int64_t, int64_t from) {
        C v = static_cast<C>(in[from]);
        sum[out] = i == 0 ? v : static_cast<C>(f(sum[out], v));
      });
    }
    auto out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(finish(sum[i]));
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(first.dtype())));
}

// Inputs that are equal to the result share the gradient.
absl::Status ShareGradient(G& g) {
  std::vector<Term> equal;
  for (int i = 0; i < g.input_count(); ++i) equal.push_back(g.CastTo(Binary("Equal", g.x(i), g.y()), g.dtype()));
  Term count = equal[0];
  for (size_t i = 1; i < equal.size(); ++i) count = count + equal[i];
  for (int i = 0; i < g.input_count(); ++i) {
    MGE_RETURN_IF_ERROR(g.SetSum(i, g.dy() * equal[static_cast<size_t>(i)] / count));
  }
  return absl::OkStatus();
}

absl::Status SetAll(G& g, const Term& gradient) {
  for (int i = 0; i < g.input_count(); ++i) MGE_RETURN_IF_ERROR(g.SetSum(i, gradient));
  return absl::OkStatus();
}

absl::Status EvalMean(EvalContext& ctx) {
  return EvalVariadic(
      ctx, kForFloating, [](auto a, auto b) { return a + b; },
      [n = ctx.input_count()](auto sum) { return sum / static_cast<decltype(sum)>(n); });
}

constexpr OpDef Row(std::string_view name, std::string_view doc, std::string_view output, TypeSet types, OpDef more) {
  more.name = name;
  more.doc = doc;
  more.inputs = {{"data_0", types}, {"data", types, Arity::kVariadic}};
  more.outputs = {{output}};
  more.infer = BroadcastInfer;
  more.upgrade = DropConsumedInputs;
  more.in_place = {{0, 0}, {0, 1}};
  more.traits = kElementwise | kCommutative;
  return more;
}

constexpr OpDef kRows[] = {
    Row("Max", "The largest of all inputs, with broadcasting. NaN if one of them is NaN.", "max", kNumeric,
        {.eval =
             [](EvalContext& ctx) {
               return EvalVariadic(ctx, kForNumeric, [](auto a, auto b) { return a > b || a != a ? a : b; });
             },
         .gradient = ShareGradient,
         .examples = {"(T[3,7], T[7], T[3,1])", "(T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                      "(T[3,7], =0)"}}),
    Row("Mean", "Mean of all inputs, with broadcasting.", "mean", kFloating,
        {.eval = EvalMean,
         .gradient = [](G& g) { return SetAll(g, g.dy() / g.input_count()); },
         .examples = {"(T[3,7], T[7], T[3,1])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)", "(T[3,7], =0)"}}),
    Row("Min", "The smallest of all inputs, with broadcasting. NaN if one of them is NaN.", "min", kNumeric,
        {.eval =
             [](EvalContext& ctx) {
               return EvalVariadic(ctx, kForNumeric, [](auto a, auto b) { return a < b || a != a ? a : b; });
             },
         .gradient = ShareGradient,
         .examples = {"(T[3,7], T[7], T[3,1])", "(T[37], T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                      "(T[3,7], =0)"}}),
    Row("Sum", "Sum of all inputs, with broadcasting.", "sum", kFloating,
        {.eval = [](EvalContext& ctx) { return EvalVariadic(ctx, kForFloating, [](auto a, auto b) { return a + b; }); },
         .gradient = [](G& g) { return SetAll(g, g.dy()); },
         .examples = {"(T[3,7], T[7], T[3,1])", "(T[37], T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                      "(T[3,7], =0, T[7])"}}),
};

}  // namespace

MGE_OPS(variadic) = kRows;

}  // namespace mge::op_variadic
