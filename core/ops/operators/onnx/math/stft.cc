// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fft.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_stft {
namespace {

enum Input { kSignal, kStep, kWindow, kLength };

struct Frames {
  int64_t step = 0;
  int64_t length = 0;
  Shape output;  // [batch, frames, bins, 2]
};

// Resolves the frames. All sizes must be known. `length` is the value of input frame_length, or kUnknownDim if it is
// absent.
absl::StatusOr<Frames> Resolve(const Attributes& attrs, std::span<const int64_t> x, int64_t step,
                               /*nullable*/ const Shape* window, int64_t length) {
  if (x.size() == 2) return Resolve(attrs, Shape{x[0], x[1], 1}, step, window, length);
  MGE_RETURN_IF_ERROR(RequireRank("the signal", x, 3));
  if (x[2] != 1 && x[2] != 2) return BadNode(fmt::format("the last dimension is {}; it must be 1 or 2", x[2]));
  const bool one_sided = attrs.Int("onesided") != 0;
  if (one_sided && x[2] == 2) return BadNode("a one-sided transform (attribute onesided = 1) requires a real signal");
  if (step < 1) return BadNode(fmt::format("frame_step = {} must be at least 1", step));
  Frames f;
  f.step = step;
  f.length = length != kUnknownDim ? length : window && !window->empty() ? (*window)[0] : x[1];
  if (f.length < 1 || f.length > x[1]) {
    return BadNode(fmt::format("frame_length = {} is outside of 1..{} (the signal's length)", f.length, x[1]));
  }
  if (window) MGE_RETURN_IF_ERROR(RequireShape("the window", *window, Shape{f.length}));
  f.output = {x[0], (x[1] - f.length) / step + 1, one_sided ? f.length / 2 + 1 : f.length, 2};
  return f;
}

// Some exporters leave out the last dimension of a real signal.
std::string Deviation(const Graph& graph, const Node& node) {
  const TensorType& signal = graph.value(node.inputs[kSignal]).type;
  if (!signal.has_rank || signal.dims.size() != 2) return "";
  return "the signal has the shape [batch, length]; it is read as [batch, length, 1]";
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kSignal, kWindow}));
  const TensorType& x = ctx.input(kSignal);
  if (x.has_rank && x.dims.size() != 2) MGE_RETURN_IF_ERROR(RequireRank("the signal", x.dims, 3));
  TensorType y = MakeType(x.dtype, {x.has_rank ? x.dims[0] : kUnknownDim, kUnknownDim, kUnknownDim, 2});
  const Tensor* step = ctx.constant(kStep);
  const Tensor* length = ctx.has_input(kLength) ? ctx.constant(kLength) : nullptr;
  const bool window_known = !ctx.has_input(kWindow) || (ctx.input(kWindow).has_rank && IsStatic(ctx.input(kWindow).dims));
  if (x.IsStatic() && step && window_known && (length || !ctx.has_input(kLength))) {
    MGE_ASSIGN_OR_RETURN(int64_t step_value, ScalarInt("frame_step", *step));
    int64_t length_value = kUnknownDim;
    if (length) {
      MGE_ASSIGN_OR_RETURN(length_value, ScalarInt("frame_length", *length));
    }
    if (length && length_value < 1) return BadNode(fmt::format("frame_length = {} must be at least 1", length_value));
    MGE_ASSIGN_OR_RETURN(Frames f, Resolve(ctx.attrs(), x.dims, step_value,
                                           ctx.has_input(kWindow) ? &ctx.input(kWindow).dims : nullptr, length_value));
    y.dims = std::move(f.output);
  }
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(EvalContext& ctx, const Frames& f, const Tensor& x, Tensor& y) {
  MGE_ASSIGN_OR_RETURN(Fft fft, Fft::Create(f.length, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Tensor::Create(DType::kC128, {f.length}, ctx.allocator()));
  std::span<Complex> line(static_cast<Complex*>(scratch.mutable_data()), static_cast<size_t>(f.length));
  const T* window = ctx.has_input(kWindow) ? ctx.input(kWindow).Data<T>().data() : nullptr;
  const int64_t size = x.shape()[1], parts = x.rank() == 2 ? 1 : x.shape()[2], frames = f.output[1], bins = f.output[2];
  T* out = y.MutableData<T>().data();
  for (int64_t n = 0; n < f.output[0]; ++n) {
    for (int64_t frame = 0; frame < frames; ++frame) {
      MGE_RETURN_IF_ERROR(ctx.CheckStop());
      const T* in = x.Data<T>().data() + (n * size + frame * f.step) * parts;
      for (int64_t i = 0; i < f.length; ++i, in += parts) {
        const double weight = window ? static_cast<double>(window[i]) : 1;
        line[i] = {weight * static_cast<double>(in[0]), parts == 2 ? weight * static_cast<double>(in[1]) : 0.0};
      }
      fft.Transform(line, false);
      for (int64_t k = 0; k < bins; ++k) {
        *out++ = static_cast<T>(static_cast<Compute<T>>(line[k].real()));
        *out++ = static_cast<T>(static_cast<Compute<T>>(line[k].imag()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(kSignal);
  MGE_ASSIGN_OR_RETURN(int64_t step, ScalarInt("frame_step", ctx.input(kStep)));
  int64_t length = kUnknownDim;
  if (ctx.has_input(kLength)) {
    MGE_ASSIGN_OR_RETURN(length, ScalarInt("frame_length", ctx.input(kLength)));
  }
  MGE_ASSIGN_OR_RETURN(Frames f, Resolve(ctx.attrs(), x.shape(), step,
                                         ctx.has_input(kWindow) ? &ctx.input(kWindow).shape() : nullptr, length));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), f.output));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) { status = Run<typename decltype(tag)::type>(ctx, f, x, *y); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(stft) = {
    .name = "STFT",
    .doc = "Short-time Fourier transform: the transforms of windowed frames, frame_step apart.",
    .inputs = {{"signal", kFloating},
               {"frame_step", kIndex},
               {"window", kFloating, Arity::kOptional},
               {"frame_length", kIndex, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"onesided", 1, "not 0: only the first half of the spectrum"}},
    .infer = Infer,
    .eval = Eval,
    .deviation = Deviation,
    .since = 17,
    .examples = {"(T[1,16,1], int64[]<4>, T[8])", "(T[1,16], int64[]<4>, T[8])"},
};

}  // namespace mge::op_stft
