// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_bit_shift {
namespace {

absl::Status Infer(InferContext& ctx) {
  std::string direction = ctx.attrs().Text("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    return ctx.Invalid(fmt::format("attribute 'direction' is '{}', expected 'LEFT' or 'RIGHT'", direction));
  }
  return BinaryInfer(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  bool left = ctx.attrs().Text("direction") == "LEFT";
  return EvalBinary(ctx, kForInteger, [left](auto a, auto b) {
    using T = decltype(a);
    if (b >= static_cast<T>(8 * sizeof(T))) return T(0);
    return static_cast<T>(left ? static_cast<uint64_t>(a) << b : static_cast<uint64_t>(a) >> b);
  });
}

}  // namespace

MGE_OP(bit_shift) = {
    .name = "BitShift",
    .doc = "X shifted by Y bits, with broadcasting. The result is 0 if Y is at least the number of bits.",
    .inputs = {{"X", kUnsigned}, {"Y", kUnsigned}},
    .outputs = {{"Z"}},
    .attrs = {{"direction", AttrType::kText, true}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .since = 11,
    .examples = {"(T[3,5], T[5]@0:3) {direction=\"LEFT\"}", "(T[11], T[11]@0:3) {direction=\"RIGHT\"}"},
};

}  // namespace mge::op_bit_shift
