// SPDX-License-Identifier: Apache-2.0
// Linear models.
#include "core/ops/families/linear_model.h"

namespace mge::op_linear_models {
namespace {

absl::StatusOr<LinearModel> ReadLinearClassifier(const Attributes& attrs, const ClassLabels& labels, int64_t columns) {
  MGE_ASSIGN_OR_RETURN(LinearModel model, ReadLinearModel(attrs, columns));
  MGE_RETURN_IF_ERROR(CheckScoreCount(model.targets, labels));
  return model;
}

absl::Status InferLinearClassifier(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_ints"));
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(ReadLinearClassifier(ctx.attrs(), labels, shape.columns).status());
  SetClassifierOutputs(ctx, labels, shape.rows, labels.count());
  return absl::OkStatus();
}

absl::Status EvalLinearClassifier(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_ints"));
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(const LinearModel model, ReadLinearClassifier(ctx.attrs(), labels, shape.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, labels.dtype(), {shape.rows}));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(1, DType::kF32, {shape.rows, labels.count()}));
  Floats scores(model.targets);
  for (int64_t row = 0; row < shape.rows; ++row) {
    LinearScores(model, x.Data<float>().subspan(row * shape.columns, shape.columns), scores.data());
    FinishLinearRow(labels, transform, scores, row, *y,
                    z->MutableData<float>().subspan(row * labels.count(), labels.count()));
  }
  return absl::OkStatus();
}

absl::StatusOr<LinearModel> ReadLinearRegressor(const Attributes& attrs, int64_t columns) {
  MGE_ASSIGN_OR_RETURN(LinearModel model, ReadLinearModel(attrs, columns));
  const int64_t targets = attrs.Int("targets");
  if (model.targets == targets || model.targets == kUnknownDim) return model;
  return BadNode(fmt::format("targets is {}, but the coefficients are of {} targets", targets, model.targets));
}

absl::Status InferLinearRegressor(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(ReadLinearRegressor(ctx.attrs(), shape.columns).status());
  ctx.SetOutput(0, MakeType(DType::kF32, {shape.rows, ctx.attrs().Int("targets")}));
  return absl::OkStatus();
}

absl::Status EvalLinearRegressor(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(LinearModel model, ReadLinearRegressor(ctx.attrs(), shape.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, {shape.rows, model.targets}));
  for (int64_t row = 0; row < shape.rows; ++row) {
    const std::span<float> scores = y->MutableData<float>().subspan(row * model.targets, model.targets);
    LinearScores(model, x.Data<float>().subspan(row * shape.columns, shape.columns), scores.data());
    TransformScores(transform, scores);
  }
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "LinearClassifier",
     .domain = kMlDomain,
     .doc = "The label with the highest linear score, and the transformed scores of all labels.",
     .inputs = {{"X", kMlNumbers}},
     .outputs = {{"Y"}, {"Z"}},
     .attrs = {{"classlabels_ints", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
               {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"},
               {"coefficients", AttrType::kFloats, Presence::kRequired, "the coefficients"},
               {"intercepts", AttrType::kFloats, Presence::kOptional, "the constants of the targets; absent: 0"},
               {"multi_class", 0, "1: one class for each"},
               {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"}},
     .infer = InferLinearClassifier,
     .eval = EvalLinearClassifier,
     .examples = {"(T[5,3]) {coefficients=[0.5,1.5,-1.0], intercepts=[0.25], classlabels_ints=[3,7], "
                  "post_transform=\"LOGISTIC\"} -> 2",
                  "(T[7,2]) {coefficients=[0.5,1.5,-1.0,2.0,0.75,-0.5], intercepts=[0.25,-1.0,0.5], "
                  "classlabels_ints=[0,1,2], post_transform=\"SOFTMAX\"} -> 2"}},
    {.name = "LinearRegressor",
     .domain = kMlDomain,
     .doc = "The sum of features times coefficients, plus an intercept, for each target.",
     .inputs = {{"X", kMlNumbers}},
     .outputs = {{"Y"}},
     .attrs = {{"coefficients", AttrType::kFloats, Presence::kOptional, "the coefficients; absent: none"},
               {"intercepts", AttrType::kFloats, Presence::kOptional, "the constants of the targets; absent: 0"},
               {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"},
               {"targets", 1, "the number of targets"}},
     .infer = InferLinearRegressor,
     .eval = EvalLinearRegressor,
     .examples = {"(T[5,3]) {coefficients=[0.5,1.5,-1.0], intercepts=[0.25]}",
                  "(T[7,2]) {coefficients=[0.5,1.5,-1.0,2.0], intercepts=[0.25,-1.0], targets=2}",
                  "(T[3]) {coefficients=[0.5,1.5,-1.0], post_transform=\"LOGISTIC\"}"}},
};

}  // namespace

MGE_OPS(linear_models) = kRows;

}  // namespace mge::op_linear_models
