// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic and operations on bits, with broadcasting.
#include <cmath>

#include "core/ops/families/binary.h"
#include "core/ops/families/unary.h"

namespace mge::op_logic {
namespace {

template <typename F>
constexpr OpDef Bits(std::string_view name, std::string_view doc, F) {
  return BinaryRow(
      name, doc, kInteger,
      {.eval = [](EvalContext& ctx) { return EvalBinary(ctx, kForInteger, F{}); }, .traits = kCommutative, .since = 18});
}
template <typename F>
constexpr OpDef Logic(std::string_view name, std::string_view doc, F) {
  return BinaryRow(
      name, doc, kBoolean,
      OldBroadcast({.eval = [](EvalContext& ctx) { return EvalBinary(ctx, kForBool, F{}); }, .traits = kCommutative}),
      CompareInfer);
}
template <typename F>
constexpr OpDef Comparison(std::string_view name, std::string_view doc, F, OpDef more) {
  more.eval = [](EvalContext& ctx) { return EvalBinary<bool>(ctx, kForNumeric, F{}); };
  return CompareRow(name, doc, kNumeric, more);
}

// Returns the row of a question about each element, which may be of any floating type.
constexpr OpDef FloatTest(std::string_view name, std::string_view doc, EvalFn eval, OpDef more) {
  OpDef row = UnaryRow(name, doc, kFloating, kForFloating, eval, more, BoolOfFirst);
  row.in_place = {};
  return row;
}

absl::Status InferBitShift(InferContext& ctx) {
  std::string direction = ctx.attrs().Text("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    return ctx.Invalid(fmt::format("attribute 'direction' is '{}', expected 'LEFT' or 'RIGHT'", direction));
  }
  return BinaryInfer(ctx);
}

absl::Status EvalBitShift(EvalContext& ctx) {
  bool left = ctx.attrs().Text("direction") == "LEFT";
  return EvalBinary(ctx, kForInteger, [left](auto a, auto b) {
    using T = decltype(a);
    const auto count = static_cast<uint64_t>(b);  // a negative number becomes a large one
    const bool all = count >= 8 * sizeof(T);
    if (left) return all ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << count);
    return static_cast<T>(all ? (a < T(0) ? T(-1) : T(0)) : a >> count);
  });
}

absl::Status EvalEqual(EvalContext& ctx) {
  if (ctx.input(0).dtype() == DType::kString) {
    return EvalBinary<bool>(ctx, kForString, [](const std::string& a, const std::string& b) { return a == b; });
  }
  return EvalBinary<bool>(ctx, kForFixedSize, [](auto a, auto b) { return a == b; });
}

absl::Status EvalIsInf(EvalContext& ctx) {
  const bool negative = ctx.attrs().Int("detect_negative") != 0, positive = ctx.attrs().Int("detect_positive") != 0;
  return EvalUnary<bool>(ctx, kForFloating, [=](auto x) { return std::isinf(x) && (x < 0 ? negative : positive); });
}

constexpr OpDef kRows[] = {
    Logic("And", "Logical and, with broadcasting.", [](bool a, bool b) { return a && b; }),
    BinaryRow(
        "BitShift",
        "X shifted by Y bits, with broadcasting. A shift to the right keeps the sign. All bits are shifted out if Y is "
        "negative, or at least the number of bits.",
        kInteger,
        {.inputs = {{"X", kInteger}, {"Y", kInteger}},
         .outputs = {{"Z"}},
         .attrs = {{"direction", AttrType::kText, Presence::kRequired, "LEFT or RIGHT"}},
         .eval = EvalBitShift,
         .since = 11,
         .examples = {"(T[3,5], T[5]@0:3) {direction=\"LEFT\"}", "(T[11], T[11]@0:3) {direction=\"RIGHT\"}"}},
        InferBitShift),
    Bits("BitwiseAnd", "Bitwise and, with broadcasting.", [](auto a, auto b) { return a & b; }),
    UnaryRow("BitwiseNot", "Inverts every bit.", kInteger, kForInteger, [](auto x) { return ~x; }, {.since = 18}),
    Bits("BitwiseOr", "Bitwise or, with broadcasting.", [](auto a, auto b) { return a | b; }),
    Bits("BitwiseXor", "Bitwise exclusive or, with broadcasting.", [](auto a, auto b) { return a ^ b; }),
    CompareRow("Equal", "True if A equals B, with broadcasting. False for NaN.", kFixedSize | kStrings,
               OldBroadcast({.eval = EvalEqual, .traits = kCommutative})),
    Comparison(
        "Greater", "True if A is greater than B, with broadcasting. False for NaN.", [](auto a, auto b) { return a > b; },
        OldBroadcast()),
    Comparison("GreaterOrEqual", "True if A is greater than or equal to B, with broadcasting. False for NaN.",
               [](auto a, auto b) { return a >= b; }, {.since = 12}),
    FloatTest("IsInf", "True if an element is infinite with a sign that the attributes select.", EvalIsInf,
              {.attrs = {{"detect_negative", 1, "not 0: finds -inf"}, {"detect_positive", 1, "not 0: finds +inf"}},
               .since = 10,
               .examples = {"(T[3,7])", "(T[67]@special)", "(T[67]@special) {detect_negative=0}",
                            "(T[67]@special) {detect_positive=0}", "(T[70001])"}}),
    FloatTest("IsNaN", "True if an element is NaN.",
              [](EvalContext& ctx) { return EvalUnary<bool>(ctx, kForFloating, [](auto x) { return std::isnan(x); }); },
              {.since = 9}),
    Comparison(
        "Less", "True if A is less than B, with broadcasting. False for NaN.", [](auto a, auto b) { return a < b; },
        OldBroadcast()),
    Comparison("LessOrEqual", "True if A is less than or equal to B, with broadcasting. False for NaN.",
               [](auto a, auto b) { return a <= b; }, {.since = 12}),
    UnaryRow("Not", "Logical negation.", kBoolean, kForBool, [](bool x) { return !x; }, {}),
    Logic("Or", "Logical or, with broadcasting.", [](bool a, bool b) { return a || b; }),
    Logic("Xor", "Logical exclusive or, with broadcasting.", [](bool a, bool b) { return a != b; }),
};

}  // namespace

MGE_OPS(logic) = kRows;

}  // namespace mge::op_logic
