// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

namespace mge::op_scaler {
namespace {

absl::Status CheckList(std::string_view name, const Floats& list, int64_t columns) {
  const auto count = static_cast<int64_t>(list.size());
  if (count == 1 || (count > 0 && (columns == kUnknownDim || count == columns))) return absl::OkStatus();
  return BadNode(fmt::format("{} has {} elements for {} features; give 1, or one for each", name, count, columns));
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(CheckList("offset", ctx.attrs().FloatList("offset", {0}), shape.columns));
  MGE_RETURN_IF_ERROR(CheckList("scale", ctx.attrs().FloatList("scale", {1}), shape.columns));
  TensorType type = ctx.input(0);
  type.dtype = DType::kF32;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  const Floats offset = ctx.attrs().FloatList("offset", {0}), scale = ctx.attrs().FloatList("scale", {1});
  MGE_RETURN_IF_ERROR(CheckList("offset", offset, shape.columns));
  MGE_RETURN_IF_ERROR(CheckList("scale", scale, shape.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, x.shape()));
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const size_t offset_step = offset.size() > 1, scale_step = scale.size() > 1;
    const T* in = x.Data<T>().data();
    float* out = y->MutableData<float>().data();
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (size_t i = 0; i < static_cast<size_t>(shape.columns); ++i) {
        const Real centred = static_cast<Real>(*in++) - static_cast<Real>(offset[i * offset_step]);
        *out++ = static_cast<float>(centred * static_cast<Real>(scale[i * scale_step]));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(scaler) = {
    .name = "Scaler",
    .domain = kMlDomain,
    .doc = "(x - offset) * scale, for each feature.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"offset", AttrType::kFloats, Presence::kOptional, "subtracted first; absent: 0"},
              {"scale", AttrType::kFloats, Presence::kOptional, "the factor; absent: 1"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,3]) {offset=[0.5,1.5,-1.0], scale=[2.0,0.25,3.0]}", "(T[67]) {offset=[1.0], scale=[0.5]}",
                 "(T[257,2]) {offset=[1.0], scale=[0.5,2.0]}"},
};

}  // namespace mge::op_scaler
