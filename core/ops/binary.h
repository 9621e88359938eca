// SPDX-License-Identifier: Apache-2.0
// What operators with two broadcast inputs share.
#pragma once

#include <type_traits>

#include "core/ops/op_helpers.h"

namespace mge {

// Brings the attributes "axis" and "broadcast" of operator sets before 7 into today's form, in which B's shape is
// aligned by itself: B gets trailing dimensions of 1 through a change of its constant, or "_axis" for `infer` and
// `eval` to read.
absl::Status UpgradeOldBroadcast(Graph& graph, Node& node);

// Input 1 with the dimensions that "_axis" asks for; without the attribute, input 1 itself.
absl::StatusOr<Tensor> AlignedSecond(EvalContext& ctx);

// Shape rules that know "_axis".
absl::Status BinaryInfer(InferContext& ctx);
absl::Status CompareInfer(InferContext& ctx);

// Wraps around where a signed type would overflow; floating types are left alone.
template <typename T, typename F>
T Wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    // Narrow types are widened first: uint16_t * uint16_t would overflow int.
    using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

// z = f(x, y) over the broadcast of inputs 0 and 1, for the types of `Dispatch`; f works in Compute<T>.
// R: the output's type, void for the inputs' own.
template <typename R = void, typename Dispatch, typename F>
absl::Status EvalBinary(EvalContext& ctx, Dispatch dispatch, F f) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor y, AlignedSecond(ctx));
  if (x.dtype() != y.dtype()) {
    return ctx.Invalid(fmt::format("inputs have different types: {} and {}", DTypeName(x.dtype()),
                                   DTypeName(y.dtype())));
  }
  MGE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(x.shape(), y.shape()));
  DType out = x.dtype();
  if constexpr (!std::is_void_v<R>) out = kDTypeOf<R>;
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(0, out, std::move(shape)));
  bool known = dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Out = std::conditional_t<std::is_void_v<R>, T, R>;
    BroadcastBinary<T, Out>(x, y, *z, [&](T a, T b) {
      return f(static_cast<Compute<T>>(a), static_cast<Compute<T>>(b));
    });
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Group dispatchers as values, for EvalBinary.
inline constexpr auto kForFloating = [](DType d, auto&& f) { return DispatchFloating(d, f); };
inline constexpr auto kForInteger = [](DType d, auto&& f) { return DispatchInteger(d, f); };
inline constexpr auto kForNumeric = [](DType d, auto&& f) { return DispatchNumeric(d, f); };
inline constexpr auto kForFixedSize = [](DType d, auto&& f) { return DispatchFixedSize(d, f); };
inline constexpr auto kForBool = [](DType d, auto&& f) {
  if (d == DType::kBool) f(TypeTag<bool>{});
  return d == DType::kBool;
};

}  // namespace mge
