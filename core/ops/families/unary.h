// SPDX-License-Identifier: Apache-2.0
// Rows of the elementwise operators with one input.
//
//   Floating("Elu", "...", [](auto x, auto alpha) { return x < 0 ? alpha * std::expm1(x) : x; },
//            {.attrs = {{"alpha", 1.0f, "..."}}, .gradient = GradientOf([](G& g) { return g.dy() * ...; })})
#pragma once

#include <type_traits>

#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge {

using G = GradientContext;

// Removes "consumed_inputs", a memory hint of operator sets before 6.
inline absl::Status DropConsumedInputs(Graph&, Node& node) {
  if (node.version < 6) node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

// Sets output 0 to bool with input 0's shape.
inline absl::Status BoolOfFirst(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = DType::kBool;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

// Returns the gradient rule of an operator with one input, whose gradient is `f(g)`, a Term. Requires a lambda without captures.
template <typename F>
constexpr GradientFn GradientOf(F) {
  static_assert(std::is_empty_v<F>);
  return [](G& g) { return g.Set(0, F{}(g)); };
}

// Returns the row of an operator for the types of `dispatch`. `f` is a lambda for EvalUnary(), or an evaluator. `more` is the
// part of the row that most operators do not have; its inference is that of the last argument.
template <typename Dispatch, typename F>
constexpr OpDef UnaryRow(std::string_view name, std::string_view doc, TypeSet types, Dispatch, F f, OpDef more,
                         InferFn infer = SameTypeAsFirst) {
  more.name = name;
  more.doc = doc;
  if (more.inputs.size() == 0) more.inputs = {{"X", types}};
  more.outputs = {{"Y"}};
  more.infer = infer;
  if constexpr (std::is_same_v<F, EvalFn>) {
    more.eval = f;
  } else {
    static_assert(std::is_empty_v<F>);
    more.eval = [](EvalContext& ctx) { return EvalUnary(ctx, Dispatch{}, F{}); };
  }
  more.in_place = {{0, 0}};
  more.traits |= kElementwise;
  return more;
}
// The row of an operator whose function accepts float and double.
template <typename F>
constexpr OpDef Floating(std::string_view name, std::string_view doc, F f, OpDef more = {},
                         InferFn infer = SameTypeAsFirst) {
  return UnaryRow(name, doc, kFloating, kForFloating, f, more, infer);
}
// The row of an operator whose function accepts every compute type.
template <typename F>
constexpr OpDef Numeric(std::string_view name, std::string_view doc, F f, OpDef more = {}) {
  return UnaryRow(name, doc, kNumeric, kForNumeric, f, more);
}

}  // namespace mge
