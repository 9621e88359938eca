// SPDX-License-Identifier: Apache-2.0
// Windows for spectra.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_window_functions {
namespace {

absl::StatusOr<int64_t> ReadSize(const Tensor& tensor) {
  MGE_ASSIGN_OR_RETURN(int64_t size, ScalarInt("the size", tensor));
  if (size < 0) return Fail(errors::kInvalidNode, fmt::format("the size {} is negative", size));
  return size;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "output_datatype", kNumeric));
  int64_t size = kUnknownDim;
  if (const Tensor* value = ctx.constant(0)) {
    MGE_ASSIGN_OR_RETURN(size, ReadSize(*value));
  }
  ctx.SetOutput(0, MakeType(dtype, {size}));
  return absl::OkStatus();
}

// Fills output 0 with a0 - a1 cos(t) + a2 cos(2 t), where t goes through one turn.
absl::Status Eval(EvalContext& ctx, double a0, double a1, double a2) {
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

constexpr OpDef Row(std::string_view name, std::string_view doc, EvalFn eval) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"size", kIndex}},
          .outputs = {{"output"}},
          .attrs = {{"output_datatype", 1, "the element type of the result"},
                    {"periodic", 1, "not 0: for spectra, else symmetric"}},
          .infer = Infer,
          .eval = eval,
          .since = 17,
          .examples = {"(int64[]<8>)"}};
}

constexpr OpDef kRows[] = {
    Row("BlackmanWindow", "The Blackman window of a given size, periodic or symmetric.",
        [](EvalContext& ctx) { return Eval(ctx, 0.42, 0.5, 0.08); }),
    Row("HammingWindow", "The Hamming window of a given size, periodic or symmetric.",
        [](EvalContext& ctx) { return Eval(ctx, 25.0 / 46.0, 21.0 / 46.0, 0); }),
    Row("HannWindow", "The Hann window of a given size, periodic or symmetric.",
        [](EvalContext& ctx) { return Eval(ctx, 0.5, 0.5, 0); }),
};

}  // namespace

MGE_OPS(window_functions) = kRows;

}  // namespace mge::op_window_functions
