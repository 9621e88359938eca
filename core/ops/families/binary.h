// SPDX-License-Identifier: Apache-2.0
// Helpers of the operators with two broadcast inputs.
#pragma once

#include <type_traits>

#include "core/ops/op_helpers.h"

namespace mge {

// Removes the attributes "axis" and "broadcast" of operator sets before 7. If B's dimensions start at an axis of A,
// keeps that axis in the attribute "_axis" for `infer`, `eval` and the rewrite old_broadcast.
absl::Status UpgradeOldBroadcast(Graph& graph, Node& node);

// Returns input 1 with the trailing dimensions of size 1 that "_axis" requires. Without the attribute, returns input 1.
absl::StatusOr<Tensor> AlignedSecond(EvalContext& ctx);

// Does the same for a shape. `rank` is the rank of input 0. Fails with kInvalidNode if B does not fit into A at that
// axis.
absl::StatusOr<Shape> AlignedShape(const Node& node, const Shape& b, int64_t rank);

// Set output 0 to the broadcast shape of both inputs and respect "_axis". CompareInfer gives a bool output.
absl::Status BinaryInfer(InferContext& ctx);
absl::Status CompareInfer(InferContext& ctx);

// Returns f(a, b). Integers are computed in an unsigned type, so that overflow wraps around.
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

// Returns kNoResult, the error of an integer that is divided by zero; a negative power of 0 is such a division.
absl::Status DividedByZero(const EvalContext& ctx);

// Calls f(i, a, b) for every element i of `out`. `a` and `b` are the offsets in operands of shapes `x` and `y`, which
// must be broadcastable to `out`.
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

// Computes z = f(x, y) over the broadcast of inputs 0 and 1, for the types of `Dispatch`. `f` computes in Compute<T>. R
// is the output's element type; void means that of the inputs.
template <typename R = void, typename Dispatch, typename F>
absl::Status EvalBinary(EvalContext& ctx, Dispatch dispatch, F f) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor y, AlignedSecond(ctx));
  if (x.dtype() != y.dtype()) {
    return ctx.Invalid(fmt::format("inputs have different types: {} and {}", DTypeName(x.dtype()), DTypeName(y.dtype())));
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

// Returns the row with the upgrade of models that have the old attributes of broadcasting, and the attribute that it sets.
constexpr OpDef OldBroadcast(OpDef row = {}) {
  row.attrs = {{"_axis", AttrType::kInt}};
  row.upgrade = UpgradeOldBroadcast;
  return row;
}

// Returns the row of an elementwise operator with two inputs. `more` is the part that most operators do not have; its evaluator
// must be there, and its inference is that of the last argument.
constexpr OpDef BinaryRow(std::string_view name, std::string_view doc, TypeSet types, OpDef more,
                          InferFn infer = BinaryInfer) {
  more.name = name;
  more.doc = doc;
  if (more.inputs.size() == 0) more.inputs = {{"A", types}, {"B", types}};
  if (more.outputs.size() == 0) more.outputs = {{"C"}};
  more.infer = infer;
  more.in_place = {{0, 0}, {0, 1}};
  more.traits |= kElementwise;
  return more;
}
// Does the same for an operator whose output is bool.
constexpr OpDef CompareRow(std::string_view name, std::string_view doc, TypeSet types, OpDef more) {
  OpDef row = BinaryRow(name, doc, types, more, CompareInfer);
  row.in_place = {};
  return row;
}

}  // namespace mge
