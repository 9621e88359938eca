// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/collective.h"

namespace mge::op_all_reduce {
namespace {

absl::Status Infer(InferContext& ctx) {
  const std::string reduction = ctx.attrs().Text("reduction");
  if (reduction != "sum" && reduction != "product" && reduction != "min" && reduction != "max") {
    return ctx.Invalid(fmt::format("reduction is '{}', expected sum, product, min or max", reduction));
  }
  return CollectiveInfer(ctx);
}

}  // namespace

MGE_OP(all_reduce) = {
    .name = "AllReduce",
    .domain = "mge",
    .doc = "Each input, combined element by element over all ranks (settings collective.*): the sum, product, min or max.",
    .inputs = {{"X", kNumeric, Arity::kVariadic}},
    .outputs = {{"Y", kAnyType, Arity::kVariadic}},
    .attrs = {{"reduction", "sum", "sum, mean, max or min"}},
    .infer = Infer,
    .eval = EvalOneRank,
    .traits = kAllReduce,
};

}  // namespace mge::op_all_reduce
