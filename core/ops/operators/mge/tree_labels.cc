// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/trees.h"

namespace mge::op_tree_labels {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_int64s"));
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(RequireSize("the number of scores", shape.columns, labels.count()));
  SetClassifierOutputs(ctx, labels, shape.rows, labels.count());
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  TreeClasses classes;
  MGE_ASSIGN_OR_RETURN(classes.labels, ReadLabels(ctx.attrs(), "classlabels_int64s"));
  MGE_ASSIGN_OR_RETURN(classes.transform, ReadPostTransform(ctx.attrs()));
  classes.binary = ctx.attrs().Int("binary") != 0;
  classes.positive = ctx.attrs().Int("positive") != 0;
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(0).shape()));
  const int64_t count = classes.labels.count();
  MGE_RETURN_IF_ERROR(RequireSize("the number of scores", shape.columns, count));
  std::vector<uint8_t> scored(static_cast<size_t>(count), 0);
  for (int64_t i : ctx.attrs().IntList("scored")) {
    if (i < 0 || i >= count) return ctx.Invalid(fmt::format("scored has the class {}; there are {}", i, count));
    scored[static_cast<size_t>(i)] = 1;
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, classes.labels.dtype(), {shape.rows}));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(1, DType::kF32, {shape.rows, count}));
  for (int64_t row = 0; row < shape.rows; ++row) {
    FinishTreeRow(classes, ctx.input(0).Data<float>().subspan(row * count, count), scored, row, *y,
                  z->MutableData<float>().subspan(row * count, count));
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(tree_labels) = {
    .name = "TreeLabels",
    .domain = "mge",
    .doc =
        "The last step of a TreeEnsembleClassifier: labels and transformed scores, from the scores of an "
        "ensemble. Classes that are not in \"scored\" have no score.",
    .inputs = {{"scores", {DType::kF32}}},
    .outputs = {{"Y"}, {"Z"}},
    .attrs = {{"binary", 0, "one score stands for two classes"},
              {"classlabels_int64s", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
              {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"},
              {"positive", 0, "scores are not negative"},
              {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"},
              {"scored", AttrType::kInts, Presence::kOptional, "classes that have scores; absent: none"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_tree_labels
