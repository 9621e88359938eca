// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/svm.h"

namespace mge::op_svm_regressor {
namespace {

absl::StatusOr<Svm> Read(const Attributes& attrs, int64_t columns) {
  MGE_ASSIGN_OR_RETURN(Svm svm, ReadSvm(attrs, attrs.Int("n_supports"), 1));
  MGE_RETURN_IF_ERROR(RequireSize("the number of features", columns, svm.columns));
  if (svm.count > 0 && static_cast<int64_t>(svm.coefficients.size()) != svm.count) {
    return BadNode(fmt::format("{} coefficients for {} support vectors", svm.coefficients.size(), svm.count));
  }
  return svm;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadPostTransform(ctx.attrs()).status());
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(Read(ctx.attrs(), shape.columns).status());
  ctx.SetOutput(0, MakeType(DType::kF32, {shape.rows, 1}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(PostTransform transform, ReadPostTransform(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(const auto prepared, Prepared<Svm>(ctx, [&] { return Read(ctx.attrs(), shape.columns); }));
  const Svm& svm = *prepared;
  MGE_RETURN_IF_ERROR(RequireSize("the number of features", shape.columns, svm.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, {shape.rows, 1}));
  const bool one_class = ctx.attrs().Int("one_class") != 0;
  Floats kernels(svm.count > 0 ? svm.count : 1);
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (row % 256 == 0) MGE_RETURN_IF_ERROR(ctx.CheckStop());
    SvmKernels(svm, x.Data<float>().subspan(row * shape.columns, shape.columns),
               svm.count > 0 ? svm.vectors : svm.coefficients, kernels);
    double sum = svm.count > 0 ? 0 : static_cast<double>(kernels[0]);
    for (int64_t i = 0; i < svm.count; ++i)
      sum += static_cast<double>(kernels[i]) * static_cast<double>(svm.coefficients[i]);
    float& out = y->MutableData<float>()[row];
    out = static_cast<float>(sum + static_cast<double>(svm.rho[0]));
    if (one_class) {
      out = out > 0 ? 1.0f : -1.0f;  // the side of the border; no transform changes it
    } else {
      TransformScores(transform, {&out, 1});
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(svm_regressor) = {
    .name = "SVMRegressor",
    .domain = kMlDomain,
    .doc = "The value of a support vector machine; with one_class, its sign.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"coefficients", AttrType::kFloats, Presence::kRequired, "the coefficients"},
              {"kernel_params", AttrType::kFloats, Presence::kOptional, "gamma, coef0 and degree of the kernel; absent: 0"},
              {"kernel_type", "LINEAR", "LINEAR, POLY, RBF or SIGMOID"},
              {"n_supports", 0, "the number of support vectors"},
              {"one_class", 0, "not 0: the results are 1 and -1"},
              {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"},
              {"rho", AttrType::kFloats, Presence::kRequired, "the constants"},
              {"support_vectors", AttrType::kFloats, Presence::kOptional, "absent: a linear model"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,2]) {kernel_type=\"RBF\", kernel_params=[0.5,0.0,3.0], n_supports=3, rho=[0.25], "
                 "coefficients=[1.5,-1.0,0.5], support_vectors=[0.5,1.5,-1.0,2.0,0.75,-0.5]}",
                 "(T[7,3]) {coefficients=[1.5,-1.0,0.5], rho=[0.25]}"},
};

}  // namespace mge::op_svm_regressor
