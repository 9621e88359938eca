// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"
#include "core/ops/families/movement.h"

namespace mge::op_array_feature_extractor {
namespace {

// Returns the shape of the output. A vector is one row of features.
absl::StatusOr<Shape> Result(std::span<const int64_t> x, int64_t indices) {
  if (x.empty()) return BadNode("the input is a scalar; it must have a dimension of features");
  Shape shape(x.begin(), x.end() - 1);
  if (shape.empty()) shape.push_back(1);
  shape.push_back(indices);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType &x = ctx.input(0), &indices = ctx.input(1);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  const bool known = indices.has_rank && IsStatic(indices.dims);
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.dims, known ? Elements(indices.dims) : kUnknownDim));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(shape)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::span<const int64_t> indices = ctx.input(1).Data<int64_t>();
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), static_cast<int64_t>(indices.size())));
  const int64_t columns = x.shape().back();
  for (int64_t i : indices) {
    if (i < 0 || i >= columns) return ctx.Invalid(fmt::format("index {} is outside of [0, {})", i, columns));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  DispatchCopy(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* row = static_cast<const T*>(x.data());
    T* out = static_cast<T*>(y->mutable_data());
    for (const T* end = row + x.elements(); row < end; row += columns) {
      for (int64_t i : indices) *out++ = row[i];
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(array_feature_extractor) = {
    .name = "ArrayFeatureExtractor",
    .domain = kMlDomain,
    .doc = "The features with these indices, of the last dimension.",
    .inputs = {{"X", kMlNumbers | kStrings}, {"Y", {DType::kI64}}},
    .outputs = {{"Z"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,7], int64[3]<6,0,6>)", "(T[11], int64[2]<3,10>)", "(T[2,3,5], int64[1,2]<4,1>)"},
};

}  // namespace mge::op_array_feature_extractor
