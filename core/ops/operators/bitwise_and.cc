// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_bitwise_and {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary(ctx, kForInteger, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); });
}

}  // namespace

MGE_OP(bitwise_and) = {
    .name = "BitwiseAnd",
    .doc = "Bitwise and, with broadcasting.",
    .inputs = {{"A", kInteger}, {"B", kInteger}},
    .outputs = {{"C"}},
    .infer = BinaryInfer,
    .eval = Eval,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
    .since = 18,
};

}  // namespace mge::op_bitwise_and
