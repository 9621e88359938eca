// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/window_function.h"

#include <cmath>
#include <numbers>

#include "fmt/format.h"

namespace mge {
namespace {

absl::StatusOr<int64_t> ReadSize(const Tensor& tensor) {
  MGE_ASSIGN_OR_RETURN(int64_t size, ScalarInt("the size", tensor));
  if (size < 0) return Fail(errors::kInvalidNode, fmt::format("the size {} is negative", size));
  return size;
}

}  // namespace

absl::Status InferWindowFunction(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "output_datatype", kNumeric));
  int64_t size = kUnknownDim;
  if (const Tensor* value = ctx.constant(0)) {
    MGE_ASSIGN_OR_RETURN(size, ReadSize(*value));
  }
  ctx.SetOutput(0, MakeType(dtype, {size}));
  return absl::OkStatus();
}

absl::Status EvalWindowFunction(EvalContext& ctx, double a0, double a1, double a2) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "output_datatype", kNumeric));
  MGE_ASSIGN_OR_RETURN(int64_t size, ReadSize(ctx.input(0)));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, {size}));
  const int64_t period = ctx.attrs().Int("periodic") != 0 ? size : size - 1;
  DispatchNumeric(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<T> out = y->MutableData<T>();
    for (size_t n = 0; n < out.size(); ++n) {
      // A symmetric window of one element consists of its middle.
      const double turn =
          period > 0 ? 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period) : std::numbers::pi;
      const double value = a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn);
      // Rounding may produce a tiny negative number. An unsigned type cannot hold it.
      out[n] = static_cast<T>(static_cast<Compute<T>>(kIsFloating<T> ? value : std::max(value, 0.0)));
    }
  });
  return absl::OkStatus();
}

}  // namespace mge
