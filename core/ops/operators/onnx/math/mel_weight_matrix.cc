// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <vector>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_mel_weight_matrix {
namespace {

enum Input { kBins, kLength, kRate, kLow, kHigh };

constexpr int64_t kMaxBins = 1 << 20;

absl::StatusOr<int64_t> Positive(std::string_view name, const Tensor& tensor, int64_t limit = INT32_MAX) {
  MGE_ASSIGN_OR_RETURN(int64_t value, ScalarInt(name, tensor));
  if (value < 1 || value > limit) {
    return BadNode(fmt::format("{} = {} is outside of 1..{}", name, value, limit));
  }
  return value;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "output_datatype", kNumeric));
  Shape dims = {kUnknownDim, kUnknownDim};
  if (const Tensor* length = ctx.constant(kLength)) {
    MGE_ASSIGN_OR_RETURN(int64_t value, Positive("dft_length", *length));
    dims[0] = value / 2 + 1;
  }
  if (const Tensor* bins = ctx.constant(kBins)) {
    MGE_ASSIGN_OR_RETURN(dims[1], Positive("num_mel_bins", *bins, kMaxBins));
  }
  ctx.SetOutput(0, MakeType(dtype, std::move(dims)));
  return absl::OkStatus();
}

// Returns the rows at which the triangles begin, peak and end. Triangle i spans edges i, i+1 and i+2.
absl::StatusOr<std::vector<int64_t>> Edges(int64_t bins, int64_t length, int64_t rate, double low, double high) {
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  auto hertz = [](double mel) { return 700 * (std::pow(10.0, mel / 2595) - 1); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  const double rows = static_cast<double>(length / 2 + 1);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double frequency = hertz(mel(low) + static_cast<double>(i) * step);
    const double row = std::floor(static_cast<double>(length + 1) * frequency / static_cast<double>(rate));
    if (!(row >= 0 && row < rows)) {
      return BadNode(fmt::format("the range {}..{} Hz is not valid for a transform of length {} at sample rate {}", low,
                                 high, length, rate));
    }
    edges.push_back(static_cast<int64_t>(row));
  }
  return edges;
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "output_datatype", kNumeric));
  MGE_ASSIGN_OR_RETURN(int64_t bins, Positive("num_mel_bins", ctx.input(kBins), kMaxBins));
  MGE_ASSIGN_OR_RETURN(int64_t length, Positive("dft_length", ctx.input(kLength)));
  MGE_ASSIGN_OR_RETURN(int64_t rate, Positive("sample_rate", ctx.input(kRate)));
  MGE_ASSIGN_OR_RETURN(double low, ScalarFloat("lower_edge_hertz", ctx.input(kLow)));
  MGE_ASSIGN_OR_RETURN(double high, ScalarFloat("upper_edge_hertz", ctx.input(kHigh)));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, {length / 2 + 1, bins}));
  MGE_ASSIGN_OR_RETURN(std::vector<int64_t> edges, Edges(bins, length, rate, low, high));
  std::memset(y->mutable_data(), 0, static_cast<size_t>(y->bytes()));
  DispatchNumeric(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<T> out = y->MutableData<T>();
    auto set = [&](int64_t row, int64_t bin, double value) {
      out[row * bins + bin] = static_cast<T>(static_cast<Compute<T>>(value));
    };
    for (int64_t i = 0; i < bins; ++i) {
      const int64_t left = edges[i], middle = edges[i + 1], right = edges[i + 2];
      if (left == middle) set(middle, i, 1);
      for (int64_t row = left; row <= middle && left < middle; ++row) {
        set(row, i, static_cast<double>(row - left) / static_cast<double>(middle - left));
      }
      for (int64_t row = middle; row < right; ++row) {
        set(row, i, static_cast<double>(right - row) / static_cast<double>(right - middle));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(mel_weight_matrix) = {
    .name = "MelWeightMatrix",
    .doc = "Triangular weights that map a spectrum's bins to bins of the mel scale.",
    .inputs = {{"num_mel_bins", kIndex},
               {"dft_length", kIndex},
               {"sample_rate", kIndex},
               {"lower_edge_hertz", kFloating},
               {"upper_edge_hertz", kFloating}},
    .outputs = {{"output"}},
    .attrs = {{"output_datatype", 1, "the element type of the result"}},
    .infer = Infer,
    .eval = Eval,
    .since = 17,
    .examples = {"(int64[]<4>, int64[]<16>, int64[]<8000>, float32[]<20>, float32[]<4000>)"},
};

}  // namespace mge::op_mel_weight_matrix
