// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"

namespace mge::op_arg_min {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalArgReduce(ctx, [](auto a, auto b) { return a < b; });
}

}  // namespace

MGE_OP(arg_min) = {
    .name = "ArgMin",
    .doc = "Position of the smallest element along an axis. If several are equal, the first one or the last.",
    .inputs = {{"data", kNumeric}},
    .outputs = {{"reduced"}},
    .attrs = {AxisOf({"axis", 0, "the axis"}),
              {"keepdims", 1, "not 0: reduced axes stay with size 1"},
              {"select_last_index", 0, "not 0: the last of equal elements"}},
    .infer = ArgReduceInfer,
    .eval = Eval,
    .examples = {"(T[3,5,7]) {axis=1}"},
};

}  // namespace mge::op_arg_min
