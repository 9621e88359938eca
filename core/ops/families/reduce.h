// SPDX-License-Identifier: Apache-2.0
// Helpers of the reductions: the axes, the shape rule and the loop.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/ops/families/binary.h"
#include "core/ops/families/convert.h"
#include "core/ops/infer_checks.h"

namespace mge {

// The attributes of a reduction. Its inputs are the data and, optionally, the axes (int64). If the axes are absent or
// empty, all axes are reduced, or none with noop_with_empty_axes. A reduction over no axes still transforms each
// element: ReduceL1 returns |x|, ReduceLogSum log(x).
inline constexpr AttrList kReduceAttrs = {{"keepdims", 1, "not 0: reduced axes stay with size 1"},
                                          {"noop_with_empty_axes", 0, "not 0: no axes reduces nothing, else everything"}};
inline constexpr Slot kReduceAxes = {"axes", {DType::kI64}, Arity::kOptional};

absl::Status ReduceInfer(InferContext& ctx);

// Moves the attribute "axes" of older operator sets to input 1.
absl::Status UpgradeReduce(Graph& graph, Node& node);

// The shapes of a reduction.
struct Reduction {
  Shape kept;         // the input's shape with 1 in place of the reduced axes
  Shape out;          // the output's shape
  int64_t count = 1;  // number of elements reduced to one
};
absl::StatusOr<Reduction> ResolveReduction(EvalContext& ctx);

// The type of sums: double, or 64-bit integers that wrap around.
template <typename T>
using Accumulator = std::conditional_t<kIsFloating<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename A>
A AddWrapping(A a, A b) {
  return Wrapping(a, b, [](auto x, auto y) { return x + y; });
}
template <typename A>
A MulWrapping(A a, A b) {
  return Wrapping(a, b, [](auto x, auto y) { return x * y; });
}

// Sets out[o] = finish(step(...step(init, x)..., x)) over the elements x that are reduced to o. Computes in A.
// init(T{}) returns the start value for elements of type T.
template <typename T, typename A, typename Init, typename Step, typename Finish>
absl::Status ReduceTyped(EvalContext& ctx, const Reduction& r, const Tensor& x, Tensor& y, Init init, Step step,
                         Finish finish) {
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, y.elements()));
  std::span<A> sums = scratch.MutableData<A>();
  for (A& s : sums) s = init(T{});
  const T* in = x.Data<T>().data();
  ForBroadcast(x.shape(), r.kept, x.shape(),
               [&](int64_t i, int64_t, int64_t o) { sums[o] = step(sums[o], static_cast<A>(in[i]), o); });
  T* out = y.MutableData<T>().data();
  for (size_t o = 0; o < sums.size(); ++o) out[o] = Convert<T>(finish(sums[o]));
  return absl::OkStatus();
}

// Evaluates a reduction with `step(sum, element, output index)` and `finish(sum)` in the accumulator's type.
template <typename Dispatch, typename Init, typename Step, typename Finish>
absl::Status EvalReduce(EvalContext& ctx, Dispatch dispatch, Init init, Step step, Finish finish) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Reduction r, ResolveReduction(ctx));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), r.out));
  absl::Status status;
  bool known = dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = ReduceTyped<T, Accumulator<T>>(ctx, r, x, *y, init, step, finish);
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace mge
