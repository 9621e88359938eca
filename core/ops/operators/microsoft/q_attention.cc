// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_attention.h"
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_attention {
namespace {

enum Input { kX, kWeights, kBias, kXScale, kWeightScale, kMask, kXZero, kWeightZero, kPast };

absl::Status Infer(InferContext& ctx) { return InferAttention(ctx, kBias); }

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const ValueId x = Dequantized(f, kX, kXScale, kXZero), weights = Dequantized(f, kWeights, kWeightScale, kWeightZero);
  std::vector<ValueId> outputs = {f.output(0)};
  if (f.output(1) != kNone) outputs.push_back(f.output(1));
  f.AddMicrosoftTo(std::move(outputs), "Attention", {x, weights, f.input(kBias), f.input(kMask), f.input(kPast)}, f.attrs());
  return true;
}

}  // namespace

MGE_OP(q_attention) = {
    .name = "QAttention",
    .domain = "com.microsoft",
    .doc = "com.microsoft::Attention with a quantized input and quantized weights.",
    .inputs = {{"input", kQuantized8},
               {"weight", kQuantized8},
               {"bias", kFloating},
               {"input_scale", kFloating},
               {"weight_scale", kFloating},
               {"mask_index", {DType::kI32}, Arity::kOptional},
               {"input_zero_point", kQuantized8, Arity::kOptional},
               {"weight_zero_point", kQuantized8, Arity::kOptional},
               {"past", kFloating, Arity::kOptional}},
    .outputs = {{"output"}, {"present", kAnyType, Arity::kOptional}},
    .attrs = {{"do_rotary", 0, "not 0: rotates queries and keys"},
              {"mask_filter_value", -10000.0f, "added where the mask is 0"},
              {"num_heads", AttrType::kInt, Presence::kRequired, "the number of heads"},
              {"past_present_share_buffer", 0, "must be 0"},
              {"scale", AttrType::kFloat, Presence::kOptional,
               "the factor of the products; absent: 1 / sqrt(size of a head)"},
              {"unidirectional", 0, "not 0: a query sees only earlier keys"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,6], int8[6,24], float32[24], float32[]<0.05>, float32[]<0.01>, int32[2]<2,3>, T[]<3>, int8[]<0>) "
                 "{num_heads=2}"},
};

}  // namespace mge::op_q_attention
