// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_attention.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_microsoft_rotary_embedding {
namespace {

enum Input { kX, kPositions, kCos, kSin };

// Position ids of one element are the first position.
absl::StatusOr<bool> Body(FunctionBody& f) {
  for (const int i : {kX, kPositions, kCos}) {
    if (!f.has_rank(i)) return false;
  }
  if (f.attrs().Float("scale") != 1.0f) return f.Unsupported("the attribute scale");
  if (f.attrs().Int("is_packed_batching") != 0) return f.Unsupported("the attribute is_packed_batching");
  const Shape x = f.dims(kX);
  if ((x.size() != 3 && x.size() != 4) || f.rank(kCos) != 2) return f.Invalid("input must have 3 or 4 dimensions, caches 2");
  const int64_t rotated = f.attrs().Int("rotary_embedding_dim"), half = f.dims(kCos)[1];
  if (x.back() == kUnknownDim || half == kUnknownDim || (f.rank(kPositions) == 1 && !f.IsStatic())) return false;
  Attributes attrs = IntAttribute("interleaved", f.attrs().Int("interleaved"));
  if (rotated > 0) attrs.Set("rotary_embedding_dim", rotated);
  if (x.size() == 3) {
    const int64_t heads = f.attrs().Int("num_heads");
    if (heads <= 0 && (half == 0 || x[2] % (2 * half) != 0)) return f.Invalid("the caches do not fit the input");
    attrs.Set("num_heads", heads > 0 ? heads : x[2] / (2 * half));
  }
  ValueId positions = f.input(kPositions);
  if (f.rank(kPositions) == 1) {
    const Shape tokens = {x[0], x.size() == 3 ? x[1] : x[2]};
    std::vector<int64_t> steps(static_cast<size_t>(tokens[1]));
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i);
    positions = f.Add("Expand", {f.Add("Add", {f.Integers(steps), positions}), f.Integers(tokens)});
  }
  f.Result(0, "RotaryEmbedding", {f.input(kX), f.input(kCos), f.input(kSin), positions}, std::move(attrs));
  return true;
}

}  // namespace

MGE_OP(microsoft_rotary_embedding) = {
    .name = "RotaryEmbedding",
    .domain = "com.microsoft",
    .doc = "RotaryEmbedding with the inputs in another order. One position id is that of the first token.",
    .inputs = {{"input", kFloating}, {"position_ids", {DType::kI64}}, {"cos_cache", kFloating}, {"sin_cache", kFloating}},
    .outputs = {{"output"}},
    .attrs = {{"interleaved", 0, "not 0: pairs are neighbours, else halves"},
              {"is_packed_batching", 0, "must be 0"},
              {"num_heads", 0, "the number of heads; 0: they are an axis of the input"},
              {"rotary_embedding_dim", 0, "rotated elements of a head; 0: all"},
              {"scale", 1.0f, "must be 1"}},
    .infer = SameTypeAsFirst,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,8], int64[1]<2>, T[7,2], T[7,2])", "(T[2,2,3,4], int64[2,3]<0,1,2,3,4,5>, T[7,2], T[7,2])",
                 "(T[1,3,12], int64[1]<0>, T[7,2], T[7,2]) {num_heads=2, rotary_embedding_dim=4, interleaved=1}"},
};

}  // namespace mge::op_microsoft_rotary_embedding
