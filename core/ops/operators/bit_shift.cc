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
    const auto count = static_cast<uint64_t>(b);  // a negative number becomes a large one
    const bool all = count >= 8 * sizeof(T);
    if (left) return all ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << count);
    return static_cast<T>(all ? (a < T(0) ? T(-1) : T(0)) : a >> count);
  });
}

}  // namespace

MGE_OP(bit_shift) = {
    .name = "BitShift",
    .doc =
        "X shifted by Y bits, with broadcasting. A shift to the right keeps the sign. All bits are shifted out if Y is "
        "negative, or at least the number of bits.",
    .inputs = {{"X", kInteger}, {"Y", kInteger}},
    .outputs = {{"Z"}},
    .attrs = {{"direction", AttrType::kText, Presence::kRequired, "LEFT or RIGHT"}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .since = 11,
    .examples = {"(T[3,5], T[5]@0:3) {direction=\"LEFT\"}", "(T[11], T[11]@0:3) {direction=\"RIGHT\"}"},
};

}  // namespace mge::op_bit_shift
