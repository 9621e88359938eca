// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_log_sum_exp {
namespace {

// Evaluates in two passes. Subtracting the largest element before the exponentials prevents overflow.
template <typename T>
absl::Status EvalTyped(EvalContext& ctx, const Reduction& r, const Tensor& x, Tensor& y) {
  MGE_ASSIGN_OR_RETURN(Tensor largest, Scratch<double>(ctx, y.elements()));
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<double>(ctx, y.elements()));
  std::span<double> top = largest.MutableData<double>(), sums = scratch.MutableData<double>();
  std::fill(top.begin(), top.end(), -std::numeric_limits<double>::infinity());
  std::fill(sums.begin(), sums.end(), 0.0);
  const T* in = x.Data<T>().data();
  ForBroadcast(x.shape(), r.kept, x.shape(), [&](int64_t i, int64_t, int64_t o) {
    double v = static_cast<double>(in[i]);
    if (v > top[o]) top[o] = v;
  });
  for (double& t : top) t = std::isinf(t) ? 0 : t;
  ForBroadcast(x.shape(), r.kept, x.shape(),
               [&](int64_t i, int64_t, int64_t o) { sums[o] += std::exp(static_cast<double>(in[i]) - top[o]); });
  T* out = y.MutableData<T>().data();
  for (size_t o = 0; o < sums.size(); ++o) out[o] = FromReal<T>(std::log(sums[o]) + top[o]);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Reduction r, ResolveReduction(ctx));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), r.out));
  absl::Status status;
  DispatchNumeric(x.dtype(), [&](auto tag) { status = EvalTyped<typename decltype(tag)::type>(ctx, r, x, *y); });
  return status;
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.dy() * Unary("Exp", g.x() - r.y()));
}

}  // namespace

MGE_OP(reduce_log_sum_exp) = {
    .name = "ReduceLogSumExp",
    .doc = "Logarithm of the sum of exponentials along axes.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[3,37]@-100:100, int64[1]<1>)"},
};

}  // namespace mge::op_reduce_log_sum_exp
