// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_sign {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) {
    using T = decltype(x);
    if (x > 0) return T(1);
    if constexpr (std::is_signed_v<T>) {
      if (x < 0) return T(-1);
    }
    return x;
  });
}

}  // namespace

MGE_OP(sign) = {
    .name = "Sign",
    .doc = "-1, 0 or 1 if x is negative, zero or positive. NaN stays NaN.",
    .inputs = {{"X", kNumeric}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = ZeroGradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 9,
};

}  // namespace mge::op_sign
