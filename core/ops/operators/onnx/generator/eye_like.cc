// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_eye_like {
namespace {

constexpr TypeSet kTypes = kNumeric | kBoolean;

absl::StatusOr<DType> ResultType(const Attributes& attrs, DType input) { return ReadDType(attrs, "dtype", kTypes, input); }

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  TensorType out = x;
  if (x.dtype != DType::kUndefined || ctx.attrs().Has("dtype")) {
    MGE_ASSIGN_OR_RETURN(out.dtype, ResultType(ctx.attrs(), x.dtype));
  }
  if (x.has_rank) MGE_RETURN_IF_ERROR(RequireRank("input", x.dims, 2));
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(RequireRank("input", x.shape(), 2));
  MGE_ASSIGN_OR_RETURN(DType dtype, ResultType(ctx.attrs(), x.dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, dtype, x.shape()));
  Fill(*y, nullptr);
  const int64_t rows = x.shape()[0], columns = x.shape()[1], k = ctx.attrs().Int("k");
  if (k >= columns || k <= -rows) return absl::OkStatus();
  DispatchFixedSize(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto out = y->MutableData<T>();
    for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns; ++r) {
      out[r * columns + r + k] = static_cast<T>(1);
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(eye_like) = {
    .name = "EyeLike",
    .doc = "A matrix of the input's shape with ones on its k-th diagonal.",
    .inputs = {{"input", kTypes}},
    .outputs = {{"output"}},
    .attrs = {{"dtype", AttrType::kInt, Presence::kOptional, "the element type of the result; absent: that of the input"},
              {"k", 0, "the diagonal; 0 is the main one"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ZeroGradient,
    .since = 9,
    .examples = {"(T[4,5]) {k=1}"}};

}  // namespace mge::op_eye_like
