// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_det {
namespace {

absl::Status CheckSquare(std::span<const int64_t> shape) {
  size_t r = shape.size();
  if (r >= 2 && (shape[r - 1] == shape[r - 2] || shape[r - 1] < 0 || shape[r - 2] < 0)) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("shape {} does not hold square matrices", ShapeText(shape)));
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_RETURN_IF_ERROR(CheckSquare(x.dims));
  ctx.SetOutput(0, MakeType(x.dtype, Shape(x.dims.begin(), x.dims.end() - 2)));
  return absl::OkStatus();
}

// Returns the determinant by elimination with the largest pivot of each column. Destroys `a`.
double Determinant(std::vector<double>& a, int64_t n) {
  double det = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
    }
    if (a[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      std::swap_ranges(a.begin() + c * n, a.begin() + (c + 1) * n, a.begin() + pivot * n);
      det = -det;
    }
    det *= a[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      double factor = a[r * n + c] / a[c * n + c];
      for (int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
    }
  }
  return det;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(CheckSquare(x.shape()));
  int64_t n = x.shape().back();
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), Shape(x.shape().begin(), x.shape().end() - 2)));
  std::vector<double> matrix(n * n);
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

}  // namespace

MGE_OP(det) = {
    .name = "Det",
    .doc = "Determinants of square matrices.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .since = 11,
    .examples = {"(T[2,3,3])"},
};

}  // namespace mge::op_det
