// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"

namespace mge::op_bitwise_not {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  DispatchInteger(x.dtype(), [&](auto tag) { MapUnary<typename decltype(tag)::type>(x, *y, [](auto v) { return ~v; }); });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(bitwise_not) = {
    .name = "BitwiseNot",
    .doc = "Inverts every bit.",
    .inputs = {{"X", kInteger}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 18,
};

}  // namespace mge::op_bitwise_not
