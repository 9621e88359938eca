// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/channels_last.h"
#include "core/ops/families/window.h"

namespace mge::op_nhwc_max_pool {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(0)) return false;
  if (f.rank(0) < 3) return f.Invalid("x must have at least 3 dimensions");
  const ValueId y = f.Add("MaxPool", {ChannelsSecond(f, f.input(0), f.rank(0))}, f.attrs());
  f.Result(0, "Transpose", {y}, OneAttribute("perm", ChannelsLast(f.rank(0))));
  return true;
}

}  // namespace

MGE_OP(nhwc_max_pool) = {
    .name = "NhwcMaxPool",
    .domain = "com.microsoft",
    .doc = "MaxPool with the channels last.",
    .inputs = {{"x", {DType::kU8, DType::kI8}}},
    .outputs = {{"y"}},
    .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kWindowShapeAttr, kPadsAttr, kStridesAttr},
    .infer = InferByBody,
    .eval = EvalByBody,
    .normalize = NormalizeAnyWindow<>,
    .body = Body,
    .examples = {"(T[1,5,4,3]) {kernel_shape=[2,2], strides=[2,2]}"},
};

}  // namespace mge::op_nhwc_max_pool
