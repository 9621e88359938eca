// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op_helpers.h"

namespace mge::op_string_concat {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(a.shape(), b.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kString, std::move(shape)));
  BroadcastBinary<std::string, std::string>(a, b, *y, [](const auto& x, const auto& z) { return x + z; });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(string_concat) = {.name = "StringConcat",
                         .doc = "Joins strings pairwise.",
                         .inputs = {{"X", kStrings}, {"Y", kStrings}},
                         .outputs = {{"Z"}},
                         .infer = BroadcastInfer,
                         .eval = Eval,
                         .traits = kHostOnly,
                         .since = 20};

}  // namespace mge::op_string_concat
