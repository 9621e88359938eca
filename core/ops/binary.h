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

// The same for a shape; `rank` is that of input 0.
absl::StatusOr<Shape> AlignedShape(const Node& node, const Shape& b, int64_t rank);

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

// f(i, a, b) for every element i of `out` with its offsets into operands of shapes `x` and `y`, which broadcast to it.
template <typename F>
void ForBroadcast(std::span<const int64_t> x, std::span<const int64_t> y, std::span<const int64_t> out, F f) {
  int64_t n = Elements(out);
  if (n == 0) return;
  Shape sx = BroadcastStrides(x, out), sy = BroadcastStrides(y, out), index(out.size(), 0);
  int64_t inner = out.empty() ? 1 : out.back();
  int64_t step_x = out.empty() ? 0 : sx.back(), step_y = out.empty() ? 0 : sy.back();
  std::span<const int64_t> outer = out.empty() ? out : out.first(out.size() - 1);
  for (int64_t i = 0; i < n;) {
    int64_t at_x = 0, at_y = 0;
    for (size_t d = 0; d < outer.size(); ++d) {
      at_x += index[d] * sx[d];
      at_y += index[d] * sy[d];
    }
    for (int64_t k = 0; k < inner; ++k, ++i, at_x += step_x, at_y += step_y) f(i, at_x, at_y);
    NextIndex(outer, std::span<int64_t>(index.data(), outer.size()));
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
    const T *a = x.Data<T>().data(), *b = y.Data<T>().data();
    Out* c = z->MutableData<Out>().data();
    ForBroadcast(x.shape(), y.shape(), z->shape(), [&](int64_t i, int64_t ia, int64_t ib) {
      c[i] = static_cast<Out>(f(static_cast<const Compute<T>&>(a[ia]), static_cast<const Compute<T>&>(b[ib])));
    });
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Group dispatchers as values, for EvalBinary.
inline constexpr auto kForFloating = [](DType d, auto&& f) { return DispatchFloating(d, f); };
inline constexpr auto kForInteger = [](DType d, auto&& f) { return DispatchInteger(d, f); };
inline constexpr auto kForNumeric = [](DType d, auto&& f) { return DispatchNumeric(d, f); };
inline constexpr auto kForFixedSize = [](DType d, auto&& f) { return DispatchFixedSize(d, f); };
inline constexpr auto kForString = [](DType d, auto&& f) {
  if (d == DType::kString) f(TypeTag<std::string>{});
  return d == DType::kString;
};
inline constexpr auto kForBool = [](DType d, auto&& f) {
  if (d == DType::kBool) f(TypeTag<bool>{});
  return d == DType::kBool;
};

}  // namespace mge
