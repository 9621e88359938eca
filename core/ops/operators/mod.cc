// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "core/ops/families/binary.h"

namespace mge::op_mod {
namespace {

template <typename T>
T Remainder(T a, T b, bool sign_of_dividend) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return T(0);  // the lowest integer % -1 causes a trap on some machines
    }
    T r = static_cast<T>(a % b);
    return !sign_of_dividend && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
}

absl::Status CheckMode(const Node& node, DType dtype) {
  if (node.attrs.Int("fmod") != 0 || !kFloating.Contains(dtype)) return absl::OkStatus();
  return Fail(errors::kInvalidNode, "Mod: floating types require fmod = 1", {.where = NodePlace(node)});
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckMode(ctx.node(), ctx.input(0).dtype));
  return BinaryInfer(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckMode(ctx.node(), ctx.input(0).dtype()));
  bool sign_of_dividend = ctx.attrs().Int("fmod") != 0;
  bool by_zero = false;
  MGE_RETURN_IF_ERROR(EvalBinary(ctx, kForNumeric, [&](auto a, auto b) {
    using T = decltype(a);
    if (std::is_integral_v<T> && b == 0) {
      by_zero = true;
      return T(0);
    }
    return Remainder<T>(a, b, sign_of_dividend);
  }));
  return by_zero ? ctx.Invalid("integer remainder of a division by zero") : absl::OkStatus();
}

}  // namespace

MGE_OP(mod) = {
    .name = "Mod",
    .doc = "Remainder with the sign of B. With fmod = 1, it has the sign of A.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"fmod", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .since = 10,
    .examples = {"(T[2,3,7], T[7]@1:5) {fmod=1}", "(T[31], T[31]@1:5)", "(T[70001]@0:9, T[70001]@1:5)"},
};

}  // namespace mge::op_mod
