// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_neg {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(U(0) - static_cast<U>(x));
    }
  });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, -g.dy()); }

}  // namespace

MGE_OP(neg) = {
    .name = "Neg",
    .doc = "-x. The lowest number of a signed integer type is returned unchanged.",
    .inputs = {{"X", kFloating | kSigned}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_neg
