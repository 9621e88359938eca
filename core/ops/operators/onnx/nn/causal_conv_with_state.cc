// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/ops/function_body.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_causal_conv_with_state {
namespace {

enum Input { kX, kWeights, kBias, kPast };

struct Sizes {
  int64_t batch, channels, length, taps;
};

absl::StatusOr<bool> ReadSilu(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(const int choice, ReadChoice(attrs, "activation", {"none", "silu", "swish"}));
  return choice > 0;
}

// Sizes may be unknown. `bias` and `past` are null if absent or of unknown rank.
absl::StatusOr<Sizes> Resolve(const Shape& x, const Shape& w, /*nullable*/ const Shape* bias,
                              /*nullable*/ const Shape* past) {
  MGE_RETURN_IF_ERROR(RequireRank("the input [batch, channels, length]", x, 3));
  MGE_RETURN_IF_ERROR(RequireRank("the weight [channels, 1, taps]", w, 3));
  MGE_RETURN_IF_ERROR(RequireShape("the weight [channels, 1, taps]", w, Shape{x[1], 1, w[2]}));
  if (w[2] == 0) return BadNode("the weight has no taps; its last dimension must be at least 1");
  const Sizes s = {x[0], x[1], x[2], w[2]};
  if (bias) MGE_RETURN_IF_ERROR(RequireShape("the bias", *bias, Shape{s.channels}));
  const int64_t state = s.taps == kUnknownDim ? kUnknownDim : s.taps - 1;
  if (past) MGE_RETURN_IF_ERROR(RequireShape("past_state", *past, Shape{s.batch, s.channels, state}));
  return s;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kX, kWeights, kBias, kPast}));
  MGE_RETURN_IF_ERROR(ReadSilu(ctx.attrs()).status());
  const TensorType& x = ctx.input(kX);
  TensorType state = MakeType(x.dtype, Shape(3, kUnknownDim));
  if (x.has_rank && ctx.input(kWeights).has_rank) {
    auto shape_of = [&](int i) { return ctx.has_input(i) && ctx.input(i).has_rank ? &ctx.input(i).dims : nullptr; };
    MGE_ASSIGN_OR_RETURN(const Sizes s, Resolve(x.dims, ctx.input(kWeights).dims, shape_of(kBias), shape_of(kPast)));
    state.dims = {s.batch, s.channels, s.taps == kUnknownDim ? kUnknownDim : s.taps - 1};
  }
  ctx.SetOutput(0, x);
  ctx.SetOutput(1, std::move(state));
  return absl::OkStatus();
}

// A convolution with one group per channel, of the input behind the past. The length may be unknown.
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(kWeights) || f.dims(kWeights)[0] == kUnknownDim || f.dims(kWeights)[2] == kUnknownDim) return false;
  MGE_ASSIGN_OR_RETURN(const bool silu, ReadSilu(f.attrs()));
  const int64_t channels = f.dims(kWeights)[0], state = f.dims(kWeights)[2] - 1;
  ValueId x = f.input(kX);
  if (f.has_input(kPast)) {
    x = f.Add("Concat", {f.input(kPast), x}, IntAttribute("axis", 2));
  } else if (state > 0) {
    x = f.Add("Pad", {x, f.Integers({0, 0, state, 0, 0, 0})});
  }
  Attributes attrs = IntAttribute("group", channels);
  attrs.Set("kernel_shape", Ints{state + 1});
  const std::vector<ValueId> operands = {x, f.input(kWeights), f.input(kBias)};
  if (silu) {
    const ValueId y = f.Add("Conv", operands, std::move(attrs));
    f.Result(0, "Mul", {y, f.Add("Sigmoid", {y})});
  } else {
    f.Result(0, "Conv", operands, std::move(attrs));
  }
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  f.Result(1, "Slice", {x, f.Integers({state > 0 ? -state : kEnd}), f.Integers({kEnd}), f.Integers({2})});
  return true;
}

}  // namespace

MGE_OP(causal_conv_with_state) = {
    .name = "CausalConvWithState",
    .doc =
        "Causal convolution of each channel of [N,C,L] with its own taps [C,1,K]. The past holds the K - 1 positions before "
        "the "
        "input, or zeros; present_state holds the last K - 1 positions.",
    .inputs = {{"input", kFloating},
               {"weight", kFloating},
               {"bias", kFloating, Arity::kOptional},
               {"past_state", kFloating, Arity::kOptional}},
    .outputs = {{"output"}, {"present_state"}},
    .attrs = {{"activation", "none", "of the result: none, silu, or swish, which is the same as silu"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .since = 27,
    .examples = {"(T[2,3,7], T[3,1,4], T[3], T[2,3,3]) -> 2", "(T[1,5,2], T[5,1,4]) {activation=\"silu\"} -> 2",
                 "(T[2,4,6], T[4,1,1]) -> 2"},
};

}  // namespace mge::op_causal_conv_with_state
