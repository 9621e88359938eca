// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "core/ops/families/convert.h"
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_shrink {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_lambd = ctx.attrs().Float("lambd");
  float attr_bias = ctx.attrs().Float("bias");
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Integers are computed as reals, because lambd and bias may be fractional.
    using Real = std::conditional_t<std::is_integral_v<T>, double, Compute<T>>;
    Real lambd = attr_lambd, bias = attr_bias;
    MapUnary<T>(x, *y, [&](auto v) {
      Real r = static_cast<Real>(v);
      return FromReal<T>(r < -lambd ? r + bias : r > lambd ? r - bias : Real(0));
    });
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.Where(Unary("Abs", g.x()) > g.attrs().Float("lambd"), g.dy(), g.Number(0)));
}

}  // namespace

MGE_OP(shrink) = {
    .name = "Shrink",
    .doc = "x + bias if x < -lambd, x - bias if x > lambd, else 0.",
    .inputs = {{"X", kNumeric}},
    .outputs = {{"Y"}},
    .attrs = {{"bias", 0.0f, "the addend"}, {"lambd", 0.5f, "the limit below which the result is 0"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 9,
    .examples = {"(T[3,7]) {lambd=0.5, bias=0.1}", "(T[70001]) {lambd=0.5}"},
};

}  // namespace mge::op_shrink
