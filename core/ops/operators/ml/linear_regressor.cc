// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/linear_model.h"

namespace mge::op_linear_regressor {
namespace {

absl::StatusOr<LinearModel> Read(const Attributes& attrs, int64_t columns) {
  MGE_ASSIGN_OR_RETURN(LinearModel model, ReadLinearModel(attrs, columns));
  const int64_t targets = attrs.Int("targets");
  if (model.targets == targets || model.targets == kUnknownDim) return model;
  return BadNode(fmt::format("targets is {}, but the coefficients are of {} targets", targets, model.targets));
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(Read(ctx.attrs(), shape.columns).status());
  ctx.SetOutput(0, MakeType(DType::kF32, {shape.rows, ctx.attrs().Int("targets")}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(LinearModel model, Read(ctx.attrs(), shape.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, {shape.rows, model.targets}));
  for (int64_t row = 0; row < shape.rows; ++row) {
    const std::span<float> scores = y->MutableData<float>().subspan(row * model.targets, model.targets);
    LinearScores(model, x.Data<float>().subspan(row * shape.columns, shape.columns), scores.data());
    TransformScores(transform, scores);
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(linear_regressor) = {
    .name = "LinearRegressor",
    .domain = kMlDomain,
    .doc = "The sum of features times coefficients, plus an intercept, for each target.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"coefficients", AttrType::kFloats, Presence::kOptional, "the coefficients; absent: none"},
              {"intercepts", AttrType::kFloats, Presence::kOptional, "the constants of the targets; absent: 0"},
              {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"},
              {"targets", 1, "the number of targets"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,3]) {coefficients=[0.5,1.5,-1.0], intercepts=[0.25]}",
                 "(T[7,2]) {coefficients=[0.5,1.5,-1.0,2.0], intercepts=[0.25,-1.0], targets=2}",
                 "(T[3]) {coefficients=[0.5,1.5,-1.0], post_transform=\"LOGISTIC\"}"},
};

}  // namespace mge::op_linear_regressor
