// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/determinant.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_det_gradient {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(1);
  if (x.has_rank) MGE_RETURN_IF_ERROR(CheckSquareMatrices(x.dims));
  ctx.SetOutput(0, x);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1);
  MGE_RETURN_IF_ERROR(CheckSquareMatrices(x.shape()));
  if (dy.shape() != Shape(x.shape().begin(), x.shape().end() - 2)) {
    return Fail(errors::kInvalidNode, fmt::format("a gradient of shape {} does not fit matrices of shape {}",
                                                  ShapeText(dy.shape()), ShapeText(x.shape())));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * dx, ctx.Output(0, x.dtype(), x.shape()));
  if (x.elements() == 0) return absl::OkStatus();
  const int64_t n = x.shape().back();
  std::vector<double> matrix(static_cast<size_t>(n * n));
  absl::Status status;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    T* out = dx->MutableData<T>().data();
    for (const T gradient : dy.Data<T>()) {
      if (status.ok()) status = ctx.CheckStop();
      if (!status.ok()) return;
      for (double& m : matrix) m = static_cast<double>(*in++);
      for (const double c : Cofactors(matrix, n)) {
        *out++ = static_cast<T>(static_cast<Compute<T>>(static_cast<double>(gradient) * c));
      }
    }
  });
  return status;
}

}  // namespace

MGE_OP(det_gradient) = {
    .name = "DetGradient",
    .domain = "mge",
    .doc = "The gradient of a Det by its matrices, from that of its output (dY): their cofactors times dY.",
    .inputs = {{"dY", kFloating}, {"X", kFloating}},
    .outputs = {{"dX"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[2], T[2,3,3])"},
};

}  // namespace mge::op_det_gradient
