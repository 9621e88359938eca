// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"

#include "core/ops/op_helpers.h"

namespace mge {
namespace {

constexpr int kExactRounds = 4;  // rounds with exact ranks; later, a type that still changes loses its shape

bool SameType(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.has_rank == b.has_rank && a.dims == b.dims;
}

}  // namespace

int FormalInputs(const Graph& body) {
  return static_cast<int>(std::count_if(body.inputs().begin(), body.inputs().end(),
                                        [&](ValueId v) { return body.value(v).role != Role::kCapture; }));
}

absl::StatusOr<std::vector<ValueType>> InferCarried(InferContext& ctx, const Graph& body, std::vector<ValueType> inputs,
                                                    int first_input, int first_output, int count) {
  for (int i = 0; i < count; ++i) {
    // A formal input that is declared optional also accepts a plain value.
    ValueType& in = inputs[first_input + i];
    ValueKind formal = body.value(body.inputs()[first_input + i]).kind;
    if (IsOptional(formal) && IsSequence(formal) == IsSequence(in.kind)) in.kind = formal;
  }
  for (int round = 0;; ++round) {
    MGE_ASSIGN_OR_RETURN(std::vector<ValueType> outputs, ctx.InferBody(body, inputs));
    bool stable = true;
    for (int i = 0; i < count; ++i) {
      TensorType& in = inputs[first_input + i].type;
      ValueKind kind = inputs[first_input + i].kind;
      ValueType& out = outputs[first_output + i];
      if (kind != out.kind && !(IsOptional(kind) && IsSequence(kind) == IsSequence(out.kind))) {
        return ctx.Invalid(fmt::format("carried value {} changes its kind (tensor, sequence or optional)", i));
      }
      if (in.dtype == DType::kUndefined) in.dtype = out.type.dtype;
      if (out.type.dtype == DType::kUndefined) out.type.dtype = in.dtype;
      if (in.dtype != out.type.dtype) {
        return ctx.Invalid(
            fmt::format("carried value {} is {} but becomes {}", i, DTypeName(in.dtype), DTypeName(out.type.dtype)));
      }
      TensorType wide = Common(in, out.type);
      if (!SameType(wide, in)) {
        stable = false;
        if (round >= kExactRounds) wide = UnrankedType(wide.dtype);
        in = wide;
      }
      out.type = std::move(wide);
    }
    if (stable) return outputs;
  }
}

absl::StatusOr<HostValue> AsKind(HostValue value, ValueKind kind) {
  if (value.kind == kind || IsSequence(value.kind) != IsSequence(kind)) return value;
  if (IsOptional(value.kind) && !value.present) {
    return BadNode("an optional value is empty, but its content is required");
  }
  value.kind = kind;
  return value;
}

bool IsShapeFault(const absl::Status& status) {
  const int id = ErrorId(status);
  return id == errors::kInvalidNode.id || id == errors::kInvalidGraph.id;
}

absl::StatusOr<bool> ScalarBool(std::string_view name, const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool || tensor.elements() != 1) {
    return BadNode(
        fmt::format("{} is {}{}; one bool is expected", name, DTypeName(tensor.dtype()), ShapeText(tensor.shape())));
  }
  return tensor.Data<bool>()[0];
}

absl::StatusOr<Tensor*> EmptyOutput(EvalContext& ctx, int output) {
  TensorType type = ctx.output_type(output);
  if (type.dtype == DType::kUndefined) {
    return ctx.Invalid(fmt::format("output {} is empty, and the model does not declare its type", output));
  }
  Shape shape = type.has_rank ? type.dims : Shape{0};
  std::replace(shape.begin(), shape.end(), kUnknownDim, int64_t{0});
  return ctx.Output(output, type.dtype, std::move(shape));
}

absl::Status Stack::Append(EvalContext& ctx, std::string_view what, const Tensor& tensor) {
  if (count_ == 0) {
    element_ = tensor.shape();
  } else if (tensor.shape() != element_ || tensor.dtype() != buffer_.dtype()) {
    return ctx.Invalid(fmt::format("{} is {}{} in iteration {} but was {}{} before", what, DTypeName(tensor.dtype()),
                                   ShapeText(tensor.shape()), count_, DTypeName(buffer_.dtype()), ShapeText(element_)));
  }
  const int64_t size = tensor.elements();
  if (count_ == capacity_) {
    int64_t capacity = count_ == 0 ? 4 : 0, elements;
    if (count_ > 0 && !CheckedMul(count_, 2, &capacity)) return ctx.Invalid("too many iterations");
    if (!CheckedMul(capacity, size, &elements)) return ctx.Invalid(fmt::format("size overflow of {}", what));
    MGE_ASSIGN_OR_RETURN(Tensor grown, Tensor::Create(tensor.dtype(), {elements}, ctx.allocator()));
    if (count_ > 0) CopyElements(buffer_, 0, grown, 0, count_ * size);
    buffer_ = std::move(grown);
    capacity_ = capacity;
  }
  CopyElements(tensor, 0, buffer_, count_++ * size, size);
  return absl::OkStatus();
}

absl::Status Stack::Finish(EvalContext& ctx, int output) const {
  if (count_ == 0) {
    MGE_ASSIGN_OR_RETURN(Tensor * y, EmptyOutput(ctx, output));
    (void)y;
    return absl::OkStatus();
  }
  Shape shape = element_;
  shape.insert(shape.begin(), count_);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(output, buffer_.dtype(), std::move(shape)));
  CopyElements(buffer_, 0, *y, 0, y->elements());
  return absl::OkStatus();
}

}  // namespace mge
