// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/broadcast.h"
#include "core/ops/op_helpers.h"

namespace mge::op_sum_to {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(1);
  type.dtype = ctx.input(0).dtype;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& to = ctx.input(1).shape();
  if (!FitsBroadcastTo(to, x.shape())) {
    return ctx.Invalid(fmt::format("shape {} cannot be broadcast to {}", ShapeText(to), ShapeText(x.shape())));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), to));
  const Shape strides = BroadcastStrides(to, x.shape());
  const bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> sums(static_cast<size_t>(y->elements()));
    Shape index(x.shape().size(), 0);
    for (const T& element : x.Data<T>()) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
      sums[static_cast<size_t>(at)] += static_cast<double>(element);
      NextIndex(x.shape(), std::span<int64_t>(index.data(), index.size()));
    }
    std::span<T> out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(static_cast<Compute<T>>(sums[i]));
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(sum_to) = {
    .name = "SumTo",
    .domain = "mge",
    .doc =
        "Sums x over the dimensions in which `like` would be broadcast to the shape of x. The result has the shape of "
        "`like`.",
    .inputs = {{"x", kFloating}, {"like"}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[2,3,5], T[3,1])", "(T[4,7], T[7])", "(T[3,5], T[3,5])", "(T[6,2], T[])"},
};

}  // namespace mge::op_sum_to
