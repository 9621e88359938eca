// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_embed_layer_normalization {
namespace {

enum Input { kIds, kSegments, kWords, kPositions, kSegmentRows, kGamma, kBeta, kMask, kPositionIds };

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.type(kIds).IsStatic()) return false;
  const Shape ids = f.dims(kIds);
  if (ids.size() != 2) return f.Invalid("input_ids must have 2 dimensions");
  if (f.has_input(kSegments) != f.has_input(kSegmentRows)) {
    return f.Invalid("segment_ids and segment_embedding must be given together");
  }
  const ValueId positions =
      f.has_input(kPositionIds)
          ? f.Add("Gather", {f.input(kPositions), f.input(kPositionIds)})
          : f.Add("Slice", {f.input(kPositions), f.Integers({0}), f.Integers({ids[1]}), f.Integers({0})});
  ValueId sum = f.Add("Add", {f.Add("Gather", {f.input(kWords), f.input(kIds)}), positions});
  if (f.has_input(kSegments)) sum = f.Plus(sum, f.Add("Gather", {f.input(kSegmentRows), f.input(kSegments)}));
  f.Result(2, "Identity", {sum});
  f.Result(0, "LayerNormalization", {sum, f.input(kGamma), f.input(kBeta)},
           OneAttribute("epsilon", f.attrs().Float("epsilon")));
  if (f.has_input(kMask)) {
    f.Result(1, "ReduceSum", {f.input(kMask), f.Integers({1})}, IntAttribute("keepdims", 0));
  } else {
    f.Result(1, "Expand", {f.Number(DType::kI32, 0), f.Integers({ids[0]})});
  }
  return true;
}

}  // namespace

MGE_OP(embed_layer_normalization) = {
    .name = "EmbedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "LayerNormalization of the sum of the embeddings of words, positions and segments. Output 1 counts the words.",
    .inputs = {{"input_ids", {DType::kI32}},
               {"segment_ids", {DType::kI32}, Arity::kOptional},
               {"word_embedding", kFloating},
               {"position_embedding", kFloating},
               {"segment_embedding", kFloating, Arity::kOptional},
               {"gamma", kFloating},
               {"beta", kFloating},
               {"mask", {DType::kI32}, Arity::kOptional},
               {"position_ids", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"output"}, {"mask_index", kAnyType, Arity::kOptional}, {"embedding_sum", kAnyType, Arity::kOptional}},
    .attrs = {{"epsilon", 1e-12f, "added to the variance"}, {"mask_index_type", 0, "0: no mask index"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(int32[2,3]<1,2,3,0,4,1>, int32[2,3]<0,0,1,0,1,1>, T[5,37], T[7,37], T[2,37], T[37], T[37], "
                 "int32[2,3]<1,1,0,1,1,1>) -> 3",
                 "(int32[1,3]<1,2,3>, _, T[5,37], T[7,37], _, T[37], T[37], _, int32[1,3]<6,0,1>) {epsilon=0.001} -> 2"},
};

}  // namespace mge::op_embed_layer_normalization
