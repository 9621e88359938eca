// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/ops/families/ml.h"

namespace mge::op_normalizer {
namespace {

enum Norm { kMax, kL1, kL2 };

absl::StatusOr<Norm> NormOf(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int norm, ReadChoice(attrs, "norm", {"MAX", "L1", "L2"}));
  return static_cast<Norm>(norm);
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(NormOf(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(InferredRows(ctx).status());
  TensorType type = ctx.input(0);
  type.dtype = DType::kF32;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

// MAX is the largest element, not the largest magnitude.
float LengthOf(Norm norm, std::span<const float> row) {
  double length = norm == kMax ? static_cast<double>(row[0]) : 0;
  for (float x : row) {
    const auto wide = static_cast<double>(x);
    length = norm == kMax ? std::max(length, wide) : length + (norm == kL1 ? std::abs(wide) : wide * wide);
  }
  return static_cast<float>(norm == kL2 ? std::sqrt(length) : length);
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Norm norm, NormOf(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, x.shape()));
  const auto columns = static_cast<size_t>(shape.columns);
  for (size_t at = 0; at < static_cast<size_t>(x.elements()); at += columns) {
    const std::span<const float> row = x.Data<float>().subspan(at, columns);
    const float length = LengthOf(norm, row), divisor = length == 0 ? 1 : length;
    std::transform(row.begin(), row.end(), y->MutableData<float>().begin() + static_cast<int64_t>(at),
                   [divisor](float v) { return v / divisor; });
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(normalizer) = {
    .name = "Normalizer",
    .domain = kMlDomain,
    .doc = "Divides each row by its norm; rows of norm 0 stay unchanged.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"norm", "MAX", "MAX, L1 or L2"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,7]@1:3)", "(T[5,7]) {norm=\"L1\"}", "(T[3,65]) {norm=\"L2\"}", "(T[33]) {norm=\"L2\"}"},
};

}  // namespace mge::op_normalizer
