// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_c_dist {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const std::string metric = f.attrs().Text("metric");
  if (metric != "sqeuclidean" && metric != "euclidean") return f.Unsupported("the metric '" + metric + "'");
  const ValueId a = f.Add("Unsqueeze", {f.input(0), f.Integers({1})}), b = f.Add("Unsqueeze", {f.input(1), f.Integers({0})});
  const ValueId difference = f.Add("Sub", {a, b});
  const ValueId squares = f.Add("Mul", {difference, difference});
  const Attributes flat = IntAttribute("keepdims", 0);
  if (metric == "sqeuclidean") {
    f.Result(0, "ReduceSum", {squares, f.Integers({2})}, flat);
  } else {
    f.Result(0, "Sqrt", {f.Add("ReduceSum", {squares, f.Integers({2})}, flat)});
  }
  return true;
}

}  // namespace

MGE_OP(c_dist) = {
    .name = "CDist",
    .domain = "com.microsoft",
    .doc = "The distances between the rows of A and the rows of B.",
    .inputs = {{"A", kFloating}, {"B", kFloating}},
    .outputs = {{"C"}},
    .attrs = {{"metric", "sqeuclidean", "euclidean or sqeuclidean"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[4,5])", "(T[3,5], T[4,5]) {metric=\"euclidean\"}"},
};

}  // namespace mge::op_c_dist
