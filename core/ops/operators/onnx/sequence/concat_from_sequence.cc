// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_concat_from_sequence {
namespace {

absl::StatusOr<bool> AddsAxis(const Attributes& attrs) {
  int64_t value = attrs.Int("new_axis");
  if (value != 0 && value != 1) return BadNode(fmt::format("new_axis is {}; it must be 0 or 1", value));
  return value == 1;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(bool adds, AddsAxis(ctx.attrs()));
  TensorType type = ctx.input(0);
  type.symbols.clear();
  if (type.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), type.dims.size() + adds));
    if (adds) {
      type.dims.insert(type.dims.begin() + axis, kUnknownDim);
    } else {
      type.dims[axis] = kUnknownDim;
    }
  }
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(bool adds, AddsAxis(ctx.attrs()));
  const std::vector<Tensor>& parts = ctx.value(0).sequence;
  if (parts.empty()) return ctx.Invalid("the sequence is empty");
  const Tensor& first = parts[0];
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), first.rank() + adds));
  Shape shape = first.shape();
  if (adds) shape.insert(shape.begin() + axis, 1);
  for (size_t i = 1; i < parts.size(); ++i) {
    Shape other = parts[i].shape();
    bool fits = parts[i].rank() == first.rank() && parts[i].dtype() == first.dtype();
    if (adds && fits) other.insert(other.begin() + axis, 1);
    for (int64_t d = 0; fits && d < static_cast<int64_t>(shape.size()); ++d) {
      fits = d == axis ? CheckedAdd(shape[d], other[d], &shape[d]) : shape[d] == other[d];
    }
    if (!fits) {
      return ctx.Invalid(fmt::format("element {} is {}{} and does not match {}{}", i, DTypeName(parts[i].dtype()),
                                     ShapeText(parts[i].shape()), DTypeName(first.dtype()), ShapeText(first.shape())));
    }
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, first.dtype(), shape));
  if (y->elements() == 0) return absl::OkStatus();
  const int64_t outer = Product(shape, 0, axis), row = Product(shape, axis, shape.size());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    const int64_t size = part.elements() / outer;
    for (int64_t o = 0; o < outer; ++o) CopyElements(part, o * size, *y, o * row + at, size);
    at += size;
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(concat_from_sequence) = {
    .name = "ConcatFromSequence",
    .doc = "Concatenates the tensors of a sequence along `axis`, or stacks them.",
    .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}},
    .outputs = {{"concat_result"}},
    .attrs = {{"axis", AttrType::kInt, Presence::kRequired, "the axis"}, {"new_axis", 0, "1: joins along a new axis"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 11};

}  // namespace mge::op_concat_from_sequence
