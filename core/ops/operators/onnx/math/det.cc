// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/determinant.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"

namespace mge::op_det {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_RETURN_IF_ERROR(CheckSquareMatrices(x.dims));
  ctx.SetOutput(0, MakeType(x.dtype, Shape(x.dims.begin(), x.dims.end() - 2)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(CheckSquareMatrices(x.shape()));
  int64_t n = x.shape().back();
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), Shape(x.shape().begin(), x.shape().end() - 2)));
  std::vector<double> matrix(static_cast<size_t>(n * n));
  absl::Status status;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    for (T& out : y->MutableData<T>()) {
      if (status.ok()) status = ctx.CheckStop();
      if (!status.ok()) return;
      for (double& m : matrix) m = static_cast<double>(*in++);
      out = static_cast<T>(static_cast<Compute<T>>(Determinant(matrix, n)));
    }
  });
  return status;
}

absl::Status Gradient(GradientContext& g) { return g.Set(0, {g, g.AddOurs("DetGradient", {g.dy().id(), g.x().id()})}); }

}  // namespace

MGE_OP(det) = {
    .name = "Det",
    .doc = "Determinants of square matrices.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .since = 11,
    .examples = {"(T[2,3,3])"},
};

}  // namespace mge::op_det
