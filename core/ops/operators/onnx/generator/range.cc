// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_range {
namespace {

constexpr TypeSet kTypes = {DType::kF32, DType::kF64, DType::kI16, DType::kI32, DType::kI64, DType::kF16, DType::kBF16};

// Returns the number of elements: ceil((limit - start) / delta), at least 0.
template <typename T>
absl::StatusOr<int64_t> Count(T start, T limit, T delta) {
  if (delta == T(0)) return BadNode("delta is 0");
  if constexpr (std::is_integral_v<T>) {
    __int128 span = static_cast<__int128>(limit) - start;
    __int128 step = delta;
    if (span == 0 || (span > 0) != (step > 0)) return 0;
    __int128 n = (span + step - (step > 0 ? 1 : -1)) / step;
    if (n > INT64_MAX) return BadNode("size overflow: the range has more than 2^63 elements");
    return static_cast<int64_t>(n);
  } else {
    double n = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (std::isnan(n)) return BadNode("start, limit or delta is not a number");
    if (n >= 0x1p62) return BadNode(fmt::format("size overflow: the range has {} elements", n));
    return n > 0 ? static_cast<int64_t>(n) : 0;
  }
}

absl::StatusOr<int64_t> CountOf(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  for (const Tensor* t : {&start, &limit, &delta}) {
    if (t->elements() != 1 || t->dtype() != start.dtype()) {
      return BadNode(fmt::format("start, limit and delta must have one element each and one type; one of them is {}{}",
                                 DTypeName(t->dtype()), ShapeText(t->shape())));
    }
  }
  absl::StatusOr<int64_t> n = BadNode("start, limit and delta must be numbers");
  DispatchNumeric(start.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    n = Count<C>(start.Data<T>()[0], limit.Data<T>()[0], delta.Data<T>()[0]);
  });
  return n;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1, 2}));
  int64_t n = kUnknownDim;
  if (ctx.constant(0) && ctx.constant(1) && ctx.constant(2)) {
    MGE_ASSIGN_OR_RETURN(n, CountOf(*ctx.constant(0), *ctx.constant(1), *ctx.constant(2)));
  }
  ctx.SetOutput(0, MakeType(ctx.input(0).dtype, {n}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& start = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t n, CountOf(start, ctx.input(1), ctx.input(2)));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, start.dtype(), {n}));
  DispatchNumeric(start.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const C first = start.Data<T>()[0], delta = ctx.input(2).Data<T>()[0];
    auto out = y->MutableData<T>();
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_integral_v<C>) {
        out[i] = static_cast<T>(static_cast<uint64_t>(first) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        out[i] = static_cast<T>(first + static_cast<C>(i) * delta);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(range) = {.name = "Range",
                 .doc = "start, start + delta, ... below limit, which is not included.",
                 .inputs = {{"start", kTypes}, {"limit", kTypes}, {"delta", kTypes}},
                 .outputs = {{"output"}},
                 .infer = Infer,
                 .eval = Eval,
                 .traits = kDynamicShape | kNoFold,
                 .since = 11,
                 .examples = {"(T[]<1>, T[]<9>, T[]<2>)"}};

}  // namespace mge::op_range
