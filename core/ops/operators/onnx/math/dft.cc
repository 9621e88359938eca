// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fft.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_dft {
namespace {

enum Input { kSignal, kLength, kAxis };

constexpr int64_t kMaxLength = int64_t{1} << 39;

// Before operator set 20 the axis was an attribute.
absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version >= 20) return absl::OkStatus();
  node.inputs.resize(3, kNone);
  node.inputs[kAxis] = graph.AddConstant(node.name + "_axis", Tensor::Scalar<int64_t>(node.attrs.Int("axis", 1)));
  node.attrs.Remove("axis");
  return absl::OkStatus();
}

struct Plan {
  int64_t axis = 0;
  int64_t length = 0;    // length of the transform; kUnknownDim if unknown
  bool complex = false;  // true if the input has imaginary parts
  bool inverse = false;
  bool one_sided = false;
  Shape output;
};

// Resolves the plan of a node. `length` is null if absent or unknown. `known` tells whether a present length is known.
absl::StatusOr<Plan> Resolve(const Attributes& attrs, std::span<const int64_t> x, const Tensor* length, bool known,
                             int64_t axis) {
  Plan p;
  const int64_t rank = static_cast<int64_t>(x.size());
  if (rank < 2) {
    return Fail(errors::kInvalidNode, fmt::format("the input has shape {}; its rank must be at least 2", ShapeText(x)));
  }
  MGE_ASSIGN_OR_RETURN(p.axis, NormalizeAxis(axis, rank));
  if (p.axis == rank - 1) return Fail(errors::kInvalidNode, "the axis must not be that of real and imaginary parts");
  if (x.back() != 1 && x.back() != 2 && x.back() != kUnknownDim) {
    return Fail(errors::kInvalidNode, fmt::format("the last dimension is {}; it must be 1 (real) or 2 (complex)", x.back()));
  }
  p.complex = x.back() == 2;
  p.inverse = attrs.Int("inverse") != 0;
  p.one_sided = attrs.Int("onesided") != 0;
  if (p.one_sided && x.back() != kUnknownDim && p.complex != p.inverse) {
    return Fail(errors::kInvalidNode, p.inverse ? "a one-sided inverse transform requires complex input"
                                                : "a one-sided transform requires real input");
  }
  const int64_t size = x[p.axis];
  if (!known) {
    p.length = kUnknownDim;
  } else if (length) {
    MGE_ASSIGN_OR_RETURN(p.length, ScalarInt("dft_length", *length));
    if (p.length < 1) return Fail(errors::kInvalidNode, fmt::format("dft_length = {} must be at least 1", p.length));
  } else {
    const bool doubled = p.one_sided && p.inverse;
    if (size != kUnknownDim && (size < (doubled ? 2 : 1) || size > kMaxLength)) {
      return Fail(errors::kInvalidNode, fmt::format("a signal of {} elements along axis {} is outside of {}..{}", size,
                                                    p.axis, doubled ? 2 : 1, kMaxLength));
    }
    p.length = doubled && size != kUnknownDim ? 2 * (size - 1) : size;
  }
  p.output.assign(x.begin(), x.end());
  p.output[p.axis] = p.one_sided && !p.inverse && p.length != kUnknownDim ? p.length / 2 + 1 : p.length;
  p.output.back() = p.one_sided && p.inverse ? 1 : 2;
  return p;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(kSignal);
  TensorType y = UnrankedType(x.dtype);
  const Tensor* axis = ctx.has_input(kAxis) ? ctx.constant(kAxis) : nullptr;
  if (x.has_rank && (axis || !ctx.has_input(kAxis))) {
    int64_t at = -2;
    if (axis) {
      MGE_ASSIGN_OR_RETURN(at, ScalarInt("the axis", *axis));
    }
    const Tensor* length = ctx.has_input(kLength) ? ctx.constant(kLength) : nullptr;
    MGE_ASSIGN_OR_RETURN(Plan p, Resolve(ctx.attrs(), x.dims, length, length || !ctx.has_input(kLength), at));
    y = MakeType(x.dtype, std::move(p.output));
  }
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(EvalContext& ctx, const Plan& p, const Tensor& x, Tensor& y) {
  MGE_ASSIGN_OR_RETURN(Fft fft, Fft::Create(p.length, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Tensor::Create(DType::kC128, {p.length}, ctx.allocator()));
  std::span<Complex> line(static_cast<Complex*>(scratch.mutable_data()), static_cast<size_t>(p.length));
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < p.axis; ++i) outer *= x.shape()[i];
  for (int64_t i = p.axis + 1; i + 1 < x.rank(); ++i) inner *= x.shape()[i];
  const int64_t size = x.shape()[p.axis], bins = p.output[p.axis];
  const int64_t in_parts = x.shape().back(), out_parts = p.output.back();
  const bool mirrored = p.one_sided && p.inverse;
  const int64_t taken = std::min(size, mirrored ? p.length / 2 + 1 : p.length);
  const T* in = x.Data<T>().data();
  T* out = y.MutableData<T>().data();
  for (int64_t o = 0; o < outer; ++o) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    for (int64_t i = 0; i < inner; ++i) {
      std::fill(line.begin(), line.end(), Complex(0));
      for (int64_t k = 0; k < taken; ++k) {
        const T* value = in + ((o * size + k) * inner + i) * in_parts;
        line[k] = {static_cast<double>(value[0]), p.complex ? static_cast<double>(value[1]) : 0.0};
        if (mirrored && k > 0 && p.length - k > k) line[p.length - k] = std::conj(line[k]);
      }
      fft.Transform(line, p.inverse);
      for (int64_t k = 0; k < bins; ++k) {
        T* value = out + ((o * bins + k) * inner + i) * out_parts;
        value[0] = static_cast<T>(static_cast<Compute<T>>(line[k].real()));
        if (out_parts == 2) value[1] = static_cast<T>(static_cast<Compute<T>>(line[k].imag()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(kSignal);
  int64_t axis = -2;
  if (ctx.has_input(kAxis)) {
    MGE_ASSIGN_OR_RETURN(axis, ScalarInt("the axis", ctx.input(kAxis)));
  }
  MGE_ASSIGN_OR_RETURN(Plan p,
                       Resolve(ctx.attrs(), x.shape(), ctx.has_input(kLength) ? &ctx.input(kLength) : nullptr, true, axis));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), p.output));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) { status = Run<typename decltype(tag)::type>(ctx, p, x, *y); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Adds zeros to the end of an axis, or removes elements, so that it has as many as `size`, an int64[1]. `axis` is an int64[1].
Term Resized(GradientContext& g, const Term& x, ValueId axis, ValueId size) {
  const ValueId more = g.Add("Sub", {size, g.Add("Gather", {g.ShapeOf(x), axis})});
  const ValueId pads = g.Add("Concat", {g.Integers({0}), more}, IntAttribute("axis", 0));
  return g.Of("Pad", {x.id(), pads, kNone, axis});
}

// The gradient of a one-sided inverse transform: each bin but the first, and the last one of an even length, stands for two.
absl::StatusOr<Term> HalfSpectrum(GradientContext& g, const Term& spectrum, ValueId axis, ValueId length) {
  const Tensor* known = g.has_input(kAxis) ? g.constant(kAxis) : nullptr;
  if (g.has_input(kAxis) && !known) return g.Unsupported("a one-sided inverse DFT along an axis that is not known");
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(kSignal));
  int64_t at = -2;
  if (known) {
    MGE_ASSIGN_OR_RETURN(at, ScalarInt("the axis", *known));
  }
  MGE_ASSIGN_OR_RETURN(at, NormalizeAxis(at, rank));
  Shape column(static_cast<size_t>(rank), 1);
  column[static_cast<size_t>(at)] = -1;
  const ValueId zero = g.Constant(Tensor::Scalar<int64_t>(0)), one = g.Constant(Tensor::Scalar<int64_t>(1));
  const ValueId bins = g.Add("Squeeze", {g.Add("Gather", {g.ShapeOf(spectrum), axis})});
  const ValueId bin = g.Add("Range", {zero, bins, one});
  const ValueId first = g.Add("Equal", {bin, zero}), last = g.Add("Equal", {g.Add("Add", {bin, bin}), length});
  const ValueId weights = g.Add("Where", {g.Add("Or", {first, last}), g.Number(1).id(), g.Number(2).id()});
  return spectrum * Term(g, g.Reshape(weights, column));
}

// The transform is linear: its gradient is the transform in the other direction, not divided by the length or divided by it.
absl::Status Gradient(GradientContext& g) {
  const bool inverse = g.attrs().Int("inverse") != 0, one_sided = g.attrs().Int("onesided") != 0;
  const ValueId axis = g.has_input(kAxis) ? g.Reshape(g.CastTo(g.x(kAxis), DType::kI64).id(), {1}) : g.Integers({-2});
  auto size = [&](const Term& x, ValueId along) { return g.Add("Gather", {g.ShapeOf(x), along}); };
  const ValueId parts = g.Integers({-1});  // the axis of real and imaginary parts
  Term dy = g.dy();
  ValueId length = size(dy, axis);
  if (one_sided && !inverse) {
    length = g.has_input(kLength) ? g.Reshape(g.CastTo(g.x(kLength), DType::kI64).id(), {1}) : size(g.x(), axis);
    dy = Resized(g, dy, axis, length);
  }
  const Term factor = g.CastTo(Term(g, length), g.dtype());
  Attributes other = IntAttribute("inverse", inverse ? 0 : 1);
  if (one_sided && inverse) other.Set("onesided", int64_t{1});
  Term dx = g.Of("DFT", {dy.id(), kNone, g.Reshape(axis, {})}, std::move(other));
  if (one_sided && inverse) {
    MGE_ASSIGN_OR_RETURN(dx, HalfSpectrum(g, dx, axis, length));
  }
  dx = inverse ? dx / factor : dx * factor;
  dx = Resized(g, Resized(g, dx, axis, size(g.x(), axis)), parts, size(g.x(), parts));
  return g.Set(kSignal, dx);
}

}  // namespace

MGE_OP(dft) = {
    .name = "DFT",
    .doc =
        "Discrete Fourier transform along an axis. The last dimension holds real and imaginary "
        "parts.",
    .inputs = {{"input", kFloating}, {"dft_length", kIndex, Arity::kOptional}, {"axis", kIndex, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"inverse", 0, "not 0: the inverse transform"}, {"onesided", 0, "not 0: only the first half of the spectrum"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .since = 17,
    .examples = {"(T[1,8,1], _, int64[]<1>)", "(T[2,3,8,2], int64[]<6>, int64[]<1>) {inverse=1}",
                 "(T[2,9,1], int64[]<12>) {onesided=1}", "(T[2,5,2], int64[]<7>) {inverse=1, onesided=1}",
                 "(T[2,5,2]) {inverse=1, onesided=1}"},
};

}  // namespace mge::op_dft
