// SPDX-License-Identifier: Apache-2.0
// The shape of a tensor and the number of its elements.
#include "core/ops/families/movement.h"

namespace mge::op_shapes {
namespace {

// Returns the dimensions from attribute "start" to "end". Both are clamped to the rank.
Shape Part(const Attributes& attrs, std::span<const int64_t> dims) {
  int64_t rank = static_cast<int64_t>(dims.size());
  auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = place(attrs.Int("start"));
  int64_t end = std::max(start, place(attrs.Int("end", rank)));
  return Shape(dims.begin() + start, dims.begin() + end);
}

absl::Status InferShape(InferContext& ctx) {
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

absl::Status EvalShape(EvalContext& ctx) {
  Shape part = Part(ctx.attrs(), ctx.input(0).shape());
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {static_cast<int64_t>(part.size())}));
  std::copy(part.begin(), part.end(), y->MutableData<int64_t>().begin());
  return absl::OkStatus();
}

absl::Status InferSize(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  ctx.SetOutput(0, MakeType(DType::kI64, {}));
  if (x.has_rank && IsStatic(x.dims)) {
    MGE_ASSIGN_OR_RETURN(int64_t n, NumElements(x.dims));
    ctx.SetConstant(0, Tensor::Scalar<int64_t>(n));
  }
  return absl::OkStatus();
}

absl::Status EvalSize(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {}));
  y->MutableData<int64_t>()[0] = ctx.input(0).elements();
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "Shape",
     .doc = "The sizes of the input's dimensions, or of those in [start, end).",
     .inputs = {{"data"}},
     .outputs = {{"shape"}},
     .attrs = {{"start", 0, "the first axis"},
               {"end", AttrType::kInt, Presence::kOptional, "the axis after the last; absent: the rank"}},
     .infer = InferShape,
     .eval = EvalShape,
     .traits = kHostOnly},
    {.name = "Size",
     .doc = "The number of elements of the input.",
     .inputs = {{"data"}},
     .outputs = {{"size"}},
     .infer = InferSize,
     .eval = EvalSize,
     .traits = kHostOnly},
};

}  // namespace

MGE_OPS(shapes) = kRows;

}  // namespace mge::op_shapes
