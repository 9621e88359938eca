// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/linear_model.h"

namespace mge::op_linear_labels {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_ints"));
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(CheckScoreCount(shape.columns, labels));
  SetClassifierOutputs(ctx, labels, shape.rows, labels.count());
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_ints"));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(0).shape()));
  MGE_RETURN_IF_ERROR(CheckScoreCount(shape.columns, labels));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, labels.dtype(), {shape.rows}));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(1, DType::kF32, {shape.rows, labels.count()}));
  for (int64_t row = 0; row < shape.rows; ++row) {
    FinishLinearRow(labels, transform, ctx.input(0).Data<float>().subspan(row * shape.columns, shape.columns), row, *y,
                    z->MutableData<float>().subspan(row * labels.count(), labels.count()));
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(linear_labels) = {
    .name = "LinearLabels",
    .domain = "mge",
    .doc = "The last step of a LinearClassifier: labels and transformed scores, from the scores of the linear model.",
    .inputs = {{"scores", {DType::kF32}}},
    .outputs = {{"Y"}, {"Z"}},
    .attrs = {{"classlabels_ints", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
              {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"},
              {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_linear_labels
