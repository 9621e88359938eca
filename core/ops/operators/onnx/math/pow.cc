// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/ops/families/binary.h"
#include "core/ops/families/convert.h"
#include "core/ops/gradient.h"

namespace mge::op_pow {
namespace {

// Returns the exact power modulo 2^bits.
template <typename T, typename E>
T IntegerPower(T base, E exponent, bool* fault) {
  using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
  if (exponent < E(0)) {
    if (base == T(1)) return base;
    if constexpr (std::is_signed_v<T>) {
      if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    }
    if (base == T(0)) *fault = true;
    return T(0);
  }
  U result = 1, factor = static_cast<U>(base);
  for (auto e = static_cast<std::make_unsigned_t<E>>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <typename T, typename E>
T Power(T base, E exponent, bool* fault) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return IntegerPower(base, exponent, fault);
  } else if constexpr (std::is_same_v<Compute<T>, float> && kIsFloating<E> && !std::is_same_v<E, double>) {
    return static_cast<T>(std::pow(static_cast<float>(base), static_cast<float>(exponent)));
  } else {
    return FromReal<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}

absl::Status Infer(InferContext& ctx) {
  const TensorType &x = ctx.input(0), &y = ctx.input(1);
  TensorType out;
  out.dtype = x.dtype;
  if (x.has_rank && y.has_rank) {
    MGE_ASSIGN_OR_RETURN(Shape aligned, AlignedShape(ctx.node(), y.dims, static_cast<int64_t>(x.dims.size())));
    MGE_ASSIGN_OR_RETURN(out.dims, BroadcastShapes(x.dims, aligned));
    out.has_rank = true;
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor y, AlignedSecond(ctx));
  MGE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(x.shape(), y.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(0, x.dtype(), std::move(shape)));
  bool fault = false;
  DispatchNumeric(x.dtype(), [&](auto base_tag) {
    using T = typename decltype(base_tag)::type;
    DispatchNumeric(y.dtype(), [&](auto exponent_tag) {
      using E = typename decltype(exponent_tag)::type;
      ForBroadcast(x.shape(), y.shape(), z->shape(), [&](int64_t out, int64_t a, int64_t b) {
        z->MutableData<T>()[out] = Power(x.Data<T>()[a], y.Data<E>()[b], &fault);
      });
    });
  });
  return fault ? DividedByZero(ctx) : absl::OkStatus();
}

// By the exponent, the gradient is 0 where the base is not positive.
absl::Status Gradient(GradientContext& g) {
  const Term base = g.x(0), exponent = g.type(1).dtype == g.type(0).dtype ? g.x(1) : g.CastTo(g.x(1), g.type(0).dtype);
  MGE_RETURN_IF_ERROR(g.SetSum(0, g.dy() * exponent * Binary("Pow", base, exponent - 1)));
  if (!g.wants(1)) return absl::OkStatus();
  const Term logarithm = Unary("Log", g.Where(base > 0, base, g.Number(1)));
  return g.SetSum(1, g.dy() * g.y() * logarithm);
}

}  // namespace

MGE_OP(pow) = {
    .name = "Pow",
    .doc = "X to the power of Y, with broadcasting, in X's type. Integers wrap around.",
    .inputs = {{"X", kNumeric}, {"Y", kNumeric}},
    .outputs = {{"Z"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[2,3,7]@0.5:3, T[7]@0:3)", "(T[35]@1:3, T[]@2:2)", "(T[70001]@0.5:3, T[70001]@0:3)",
                 "(T[67]@special, T[67]@special)", "(T[70001]@0.5:3, int32[70001]@0:3)", "(T[2,3,7]@0.5:3, float32[7]@0:3)",
                 "(T[3,7]@1:2, =0)"},
};

}  // namespace mge::op_pow
