// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_shape {
namespace {

// Returns the dimensions from attribute "start" to "end". Both are clamped to the rank.
Shape Part(const Attributes& attrs, std::span<const int64_t> dims) {
  int64_t rank = static_cast<int64_t>(dims.size());
  auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = place(attrs.Int("start"));
  int64_t end = std::max(start, place(attrs.Int("end", rank)));
  return Shape(dims.begin() + start, dims.begin() + end);
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, RankedType(DType::kI64, 1));
    return absl::OkStatus();
  }
  Shape part = Part(ctx.attrs(), x.dims);
  ctx.SetOutput(0, MakeType(DType::kI64, {static_cast<int64_t>(part.size())}));
  if (IsStatic(part)) ctx.SetConstant(0, Tensor::Vector<int64_t>(part));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  Shape part = Part(ctx.attrs(), ctx.input(0).shape());
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {static_cast<int64_t>(part.size())}));
  std::copy(part.begin(), part.end(), y->MutableData<int64_t>().begin());
  return absl::OkStatus();
}

}  // namespace

MGE_OP(shape) = {.name = "Shape",
                 .doc = "The sizes of the input's dimensions, or of those in [start, end).",
                 .inputs = {{"data"}},
                 .outputs = {{"shape"}},
                 .attrs = {{"start", 0, "the first axis"},
                           {"end", AttrType::kInt, Presence::kOptional, "the axis after the last; absent: the rank"}},
                 .infer = Infer,
                 .eval = Eval,
                 .traits = kHostOnly};

}  // namespace mge::op_shape
