// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/normalization.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_lrn {
namespace {

absl::Status Check(const Node& node, size_t rank) {
  if (node.attrs.Int("size") < 1) {
    return Fail(errors::kInvalidNode, fmt::format("size is {}, expected at least 1", node.attrs.Int("size")));
  }
  if (rank < 2) return Fail(errors::kInvalidNode, fmt::format("X has rank {}, expected [N,C,...]", rank));
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank) MGE_RETURN_IF_ERROR(Check(ctx.node(), ctx.input(0).dims.size()));
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(Check(ctx.node(), x.shape().size()));
  int64_t size = ctx.attrs().Int("size");
  double alpha = ctx.attrs().Float("alpha"), beta = ctx.attrs().Float("beta");
  double bias = ctx.attrs().Float("bias");
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t batch = x.shape()[0], channels = x.shape()[1], inner = x.elements() / (batch * channels);
  int64_t before = (size - 1) / 2, after = size - 1 - before;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t n = 0; n < batch; ++n) {
      const T* in = x.Data<T>().data() + n * channels * inner;
      T* out = y->MutableData<T>().data() + n * channels * inner;
      for (int64_t c = 0; c < channels; ++c) {
        int64_t first = c > before ? c - before : 0, last = after < channels - 1 - c ? c + after : channels - 1;
        for (int64_t i = 0; i < inner; ++i) {
          double sum = 0;
          for (int64_t k = first; k <= last; ++k) {
            double v = static_cast<double>(in[k * inner + i]);
            sum += v * v;
          }
          double v = static_cast<double>(in[c * inner + i]);
          out[c * inner + i] = Rounded<T>(v / std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
        }
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const int64_t size = f.attrs().Int("size"), before = (size - 1) / 2, channels = f.dims(0)[1];
  Ints pads(2 * static_cast<size_t>(f.rank(0)), 0);
  pads[1] = before;
  pads[static_cast<size_t>(f.rank(0)) + 1] = size - 1 - before;
  const ValueId squares = f.Add("Pad", {(f.x() * f.x()).id(), f.Integers(pads)});
  std::vector<ValueId> parts;
  for (int64_t k = 0; k < size; ++k) {
    parts.push_back(f.Add("Slice", {squares, f.Integers({k}), f.Integers({k + channels}), f.Integers({1})}));
  }
  const Term sum = f.Of("Sum", parts);
  const Term base = f.attrs().Float("bias") + sum * (f.attrs().Float("alpha") / static_cast<double>(size));
  f.Result(0, "Mul", {f.input(0), Binary("Pow", base, f.Number(-f.attrs().Float("beta"))).id()});
  return true;
}

}  // namespace

MGE_OP(lrn) = {
    .name = "LRN",
    .doc = "Local response normalization: divides each element by a function of the squares in neighbouring channels.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1e-4f, "the factor of the sum of squares"},
              {"beta", 0.75f, "the exponent"},
              {"bias", 1.0f, "the addend of the base"},
              {"size", AttrType::kInt, Presence::kRequired, "the number of channels"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .gradient_body = GradientBody,
    .examples = {"(T[2,7,3,5]) {size=3}", "(T[2,7,3,4]) {size=3, alpha=0.5, beta=0.5, bias=2.0}"},
};

}  // namespace mge::op_lrn
