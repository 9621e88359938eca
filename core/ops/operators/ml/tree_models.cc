// SPDX-License-Identifier: Apache-2.0
// TreeEnsembleClassifier and TreeEnsembleRegressor, whose attributes are packed into inputs.
#include "core/ops/families/trees.h"

namespace mge::op_tree_models {
namespace {

absl::Status UpgradeTreeEnsembleClassifier(Graph& graph, Node& node) {
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(node.attrs, "classlabels_int64s"));
  return PackTreeAttributes(graph, node, "class", labels.count());
}

absl::Status InferTreeEnsembleClassifier(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, ReadLabels(ctx.attrs(), "classlabels_int64s"));
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  SetClassifierOutputs(ctx, labels, shape.rows, labels.count());
  return absl::OkStatus();
}

absl::Status EvalTreeEnsembleClassifier(EvalContext& ctx) {
  TreeClasses classes;
  MGE_ASSIGN_OR_RETURN(classes.labels, ReadLabels(ctx.attrs(), "classlabels_int64s"));
  MGE_ASSIGN_OR_RETURN(classes.transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(kTreeX).shape()));
  const int64_t count = classes.labels.count();
  MGE_ASSIGN_OR_RETURN(const Trees trees, ReadTrees(ctx, shape.columns, count));
  ReadWeightSigns(trees.targets, trees.weights, classes);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, classes.labels.dtype(), {shape.rows}));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(1, DType::kF32, {shape.rows, count}));
  const int64_t base = trees.base.defined() ? trees.base.elements() : 0;
  auto run = [&](auto real) {
    using Real = decltype(real);
    Floats scores(static_cast<size_t>(count));
    return ForEachTreeRow<Real>(ctx, trees, shape, count, TreeAggregate::kSum, [&](int64_t row, TreeScores<Real>& s) {
      for (int64_t i = 0; i < base; ++i) {
        s.scores[i] += trees.base.Data<Real>()[i];  // a single one is of the first class
        if (base == count) s.scored[i] = 1;
      }
      std::copy(s.scores.begin(), s.scores.end(), scores.begin());
      FinishTreeRow(classes, scores, s.scored, row, *y, z->MutableData<float>().subspan(row * count, count));
    });
  };
  return trees.wide ? run(double()) : run(float());
}

int64_t Targets(const Attributes& attrs) {
  const int64_t targets = attrs.Int("n_targets");
  return targets >= 1 && targets <= kMaxTreeTargets ? targets : 0;
}

absl::Status UpgradeTreeEnsembleRegressor(Graph& graph, Node& node) {
  return PackTreeAttributes(graph, node, "target", Targets(node.attrs));
}

absl::StatusOr<TreeAggregate> AggregateOf(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int choice, ReadChoice(attrs, "aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"}));
  return static_cast<TreeAggregate>(choice);
}

absl::Status InferTreeEnsembleRegressor(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(AggregateOf(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  if (Targets(ctx.attrs()) == 0) return ctx.Invalid(fmt::format("n_targets is {}", ctx.attrs().Int("n_targets")));
  ctx.SetOutput(0, MakeType(DType::kF32, {shape.rows, Targets(ctx.attrs())}));
  return absl::OkStatus();
}

absl::Status EvalTreeEnsembleRegressor(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(kTreeX).shape()));
  const int64_t targets = Targets(ctx.attrs());
  MGE_ASSIGN_OR_RETURN(const TreeAggregate aggregate, AggregateOf(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Trees trees, ReadTrees(ctx, shape.columns, targets));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, {shape.rows, targets}));
  auto run = [&](auto real) {
    using Real = decltype(real);
    return ForEachTreeRow<Real>(ctx, trees, shape, targets, aggregate, [&](int64_t row, const TreeScores<Real>& s) {
      const std::span<float> out = y->MutableData<float>().subspan(row * targets, targets);
      for (int64_t t = 0; t < targets; ++t) out[t] = static_cast<float>(s.scores[t] + TreeBase<Real>(trees, t));
      TransformScores(transform, out);
    });
  };
  return trees.wide ? run(double()) : run(float());
}

constexpr OpDef kRows[] = {
    {.name = "TreeEnsembleClassifier",
     .domain = kMlDomain,
     .doc = "The label that an ensemble of decision trees chooses, and the transformed scores of all labels. The host packs "
            "the attributes of a model into the inputs after X, as for TreeEnsemble.",
     .inputs = TreeInputs(kMlNumbers),
     .outputs = {{"Y"}, {"Z"}},
     .attrs = {{"classlabels_int64s", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
               {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"},
               {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"}},
     .infer = InferTreeEnsembleClassifier,
     .eval = EvalTreeEnsembleClassifier,
     .upgrade = UpgradeTreeEnsembleClassifier,
     .examples = {"(T[67,3], int32[3,4]<0,0,1,2, 1,0,-1,-2, 2,8,-3,-4>, float32[3]<0.25,-0.5,1.0>, int32[1]<0>, "
                  "int32[5]<0,1,2,3,4>, int32[4]<0,1,2,0>, float32[4]<1,2,4,8>) {classlabels_int64s=[3,5,7]} -> 2"}},
    {.name = "TreeEnsembleRegressor",
     .domain = kMlDomain,
     .doc =
         "The scores of an ensemble of decision trees. The host packs the attributes of a model into the inputs after X, as "
         "for TreeEnsemble.",
     .inputs = TreeInputs(kMlNumbers),
     .outputs = {{"Y"}},
     .attrs = {{"aggregate_function", "SUM", "how the trees of a target are joined: AVERAGE, SUM, MIN, MAX"},
               {"n_targets", 1, "the number of targets"},
               {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"}},
     .infer = InferTreeEnsembleRegressor,
     .eval = EvalTreeEnsembleRegressor,
     .upgrade = UpgradeTreeEnsembleRegressor,
     .examples = {"(T[67,3], int32[3,4]<0,0,1,2, 1,0,-1,-2, 2,8,-3,-4>, float32[3]<0.25,-0.5,1.0>, int32[1]<0>, "
                  "int32[5]<0,1,2,3,4>, int32[4]<0>, float32[4]<1,2,4,8>)"}},
};

}  // namespace

MGE_OPS(tree_models) = kRows;

}  // namespace mge::op_tree_models
