// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/random.h"

namespace mge {
namespace {

absl::StatusOr<Shape> ShapeAttribute(const Node& node) {
  Ints dims = node.attrs.IntList("shape");
  Shape shape(dims.begin(), dims.end());
  if (shape.size() > kMaxRank) return Fail(errors::kInvalidNode, "the shape has too many dimensions");
  MGE_RETURN_IF_ERROR(NumElements(shape).status());
  return shape;
}

}  // namespace

absl::Status RandomInfer(InferContext& ctx) {
  bool like = ctx.input_count() > 0;
  DType fallback = like && kFloating.Contains(ctx.input(0).dtype) ? ctx.input(0).dtype : DType::kF32;
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kFloating, fallback));
  if (like) {
    TensorType type = ctx.input(0);
    bool known = ctx.attrs().Has("dtype") || type.dtype != DType::kUndefined;
    type.dtype = known ? dtype : DType::kUndefined;
    ctx.SetOutput(0, std::move(type));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape shape, ShapeAttribute(ctx.node()));
  ctx.SetOutput(0, MakeType(dtype, std::move(shape)));
  return absl::OkStatus();
}

absl::Status EvalRandom(EvalContext& ctx, double (*draw)(RandomStream& stream, const Attributes& attrs)) {
  bool like = ctx.input_count() > 0;
  DType fallback = like && kFloating.Contains(ctx.input(0).dtype()) ? ctx.input(0).dtype() : DType::kF32;
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kFloating, fallback));
  Shape shape;
  if (like) {
    shape = ctx.input(0).shape();
  } else {
    MGE_ASSIGN_OR_RETURN(shape, ShapeAttribute(ctx.node()));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, std::move(shape)));
  RandomStream stream(ctx.seed());
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& out : y->MutableData<T>()) out = static_cast<T>(static_cast<Compute<T>>(draw(stream, ctx.attrs())));
  });
  return absl::OkStatus();
}

}  // namespace mge
