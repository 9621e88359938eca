// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_constant_of_shape {
namespace {

// Returns the attribute "value", or a float32 zero if it is absent.
absl::StatusOr<Tensor> ValueOf(const Attributes& attrs) {
  const Tensor* value = attrs.TensorOrNull("value");
  if (!value) return Tensor::Scalar<float>(0);
  if (value->elements() != 1) {
    return BadNode(fmt::format("attribute value has shape {}; it must have one element", ShapeText(value->shape())));
  }
  return *value;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor value, ValueOf(ctx.attrs()));
  const TensorType& shape = ctx.input(0);
  if (auto wanted = KnownInts(ctx, 0)) {
    MGE_ASSIGN_OR_RETURN(Shape dims, CheckedShape(*wanted));
    ctx.SetOutput(0, MakeType(value.dtype(), std::move(dims)));
  } else if (shape.has_rank && shape.dims.size() == 1 && shape.dims[0] >= 0 && shape.dims[0] <= kMaxRank) {
    ctx.SetOutput(0, RankedType(value.dtype(), shape.dims[0]));
  } else {
    ctx.SetOutput(0, UnrankedType(value.dtype()));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor value, ValueOf(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Ints wanted, IntsInput(ctx, 0));
  MGE_ASSIGN_OR_RETURN(Shape shape, CheckedShape(wanted));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, value.dtype(), std::move(shape)));
  Fill(*y, &value);
  return absl::OkStatus();
}

}  // namespace

MGE_OP(constant_of_shape) = {.name = "ConstantOfShape",
                             .doc = "A tensor of a given shape, filled with one value (default: a float32 0).",
                             .inputs = {{"input", {DType::kI64}}},
                             .outputs = {{"output"}},
                             .attrs = {{"value", AttrType::kTensor, Presence::kOptional, "the value; absent: 0"}},
                             .infer = Infer,
                             .eval = Eval,
                             .traits = kNoFold,
                             .since = 9,
                             .examples = {"(int64[2]<3,5>)"}};

}  // namespace mge::op_constant_of_shape
