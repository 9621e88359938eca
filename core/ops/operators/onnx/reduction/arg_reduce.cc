// SPDX-License-Identifier: Apache-2.0
// Positions of extrema along an axis.
#include "core/ops/families/arg_reduce.h"

namespace mge::op_arg_reduce {
namespace {

template <typename Better>
constexpr OpDef Row(std::string_view name, std::string_view doc, Better, Few<std::string_view, 12> examples) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"data", kNumeric}},
          .outputs = {{"reduced"}},
          .attrs = {AxisOf({"axis", 0, "the axis"}),
                    {"keepdims", 1, "not 0: reduced axes stay with size 1"},
                    {"select_last_index", 0, "not 0: the last of equal elements"}},
          .infer = ArgReduceInfer,
          .eval = [](EvalContext& ctx) { return EvalArgReduce(ctx, Better{}); },
          .examples = examples};
}

constexpr OpDef kRows[] = {
    Row("ArgMax", "Position of the largest element along an axis. If several are equal, the first one or the last.",
        [](auto a, auto b) { return a > b; }, {"(T[3,5,7]) {axis=1}", "(T[3,37]) {axis=-1, keepdims=0}"}),
    Row("ArgMin", "Position of the smallest element along an axis. If several are equal, the first one or the last.",
        [](auto a, auto b) { return a < b; }, {"(T[3,5,7]) {axis=1}"}),
};

}  // namespace

MGE_OPS(arg_reduce) = kRows;

}  // namespace mge::op_arg_reduce
