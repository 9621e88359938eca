// SPDX-License-Identifier: Apache-2.0
// Normalizations of ONNX Runtime, with a sum before them or an activation after them.
#include "core/ops/families/channels_last.h"
#include "core/ops/function_body.h"
#include "fmt/format.h"

namespace mge::op_fused_normalization {
namespace {

// Computes output 0 as the RMSNormalization of `x` from `axis` on, with input `scale`. Computes output `factor` as the inverse
// root of the mean square, if it is present; `axis` must then be that of the last dimension. `type` is the type of `x`.
absl::Status AddRmsNorm(FunctionBody& f, ValueId x, DType type, int scale, float epsilon, int64_t axis, int factor) {
  Attributes attrs = OneAttribute("epsilon", epsilon);
  attrs.Set("axis", axis);
  f.Result(0, "RMSNormalization", {x, f.input(scale)}, std::move(attrs));
  if (f.output(factor) == kNone) return absl::OkStatus();
  if (axis != -1) return f.Unsupported("the output inv_std_var of several dimensions");
  const ValueId wide = f.Cast(x, type, DType::kF32);
  const ValueId mean = f.Add("ReduceMean", {f.Add("Mul", {wide, wide}), f.Integers({-1})}, IntAttribute("keepdims", 1));
  f.Result(factor, "Reciprocal", {f.Add("Sqrt", {f.Add("Add", {mean, f.Number(DType::kF32, epsilon)})})});
  return absl::OkStatus();
}

// Computes output 0: normalizes the groups of channels of `x`, which has the type of input 0, and applies the activation.
// Inputs 1 and 2 are scale and shift. Returns false if the rank of input 0 is unknown.
absl::StatusOr<bool> AddGroupNorm(FunctionBody& f, ValueId x) {
  if (!f.has_rank(0)) return false;
  if (f.rank(0) < 3) return f.Invalid("X must have at least 3 dimensions");
  const int64_t activation = f.attrs().Int("activation");
  if (activation != 0 && activation != 1) return f.Unsupported(fmt::format("the attribute activation = {}", activation));
  const bool last = f.attrs().Int("channels_last") != 0;
  Attributes attrs = f.Only({"epsilon"});
  attrs.Set("num_groups", f.attrs().Int("groups"));
  const DType type = f.dtype(0);
  ValueId y = f.Add("GroupNormalization",
                    {last ? ChannelsSecond(f, x, f.rank(0)) : x, f.Cast(f.input(1), f.dtype(1), type),
                     f.Cast(f.input(2), f.dtype(2), type)},
                    std::move(attrs));
  if (activation == 1) y = f.Add("Swish", {y});
  if (last) {
    f.Result(0, "Transpose", {y}, OneAttribute("perm", ChannelsLast(f.rank(0))));
  } else {
    f.Result(0, "Identity", {y});
  }
  return true;
}

enum Input { kIds, kSegments, kWords, kPositions, kSegmentRows, kGamma, kBeta, kMask, kPositionIds };

absl::StatusOr<bool> EmbedLayerNormalizationBody(FunctionBody& f) {
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

// A skip of two dimensions is [batch, channels].
absl::StatusOr<bool> SkipGroupNormBody(FunctionBody& f) {
  if (!f.has_rank(0) || !f.has_rank(3)) return false;
  const bool last = f.attrs().Int("channels_last") != 0;
  const auto spread = [&](ValueId v, bool has_batch) {
    Ints axes;
    for (int64_t d = 1; d < f.rank(0) - 1; ++d) axes.push_back(last ? (has_batch ? d : d - 1) : (has_batch ? d + 1 : d));
    return axes.empty() ? v : f.Add("Unsqueeze", {v, f.Integers(axes)});
  };
  const ValueId skip = f.rank(3) == 2 && f.rank(0) > 2 ? spread(f.input(3), true) : f.input(3);
  ValueId sum = f.Add("Add", {f.input(0), skip});
  if (f.has_input(4)) sum = f.Add("Add", {sum, last ? f.input(4) : spread(f.input(4), false)});
  MGE_ASSIGN_OR_RETURN(const bool done, AddGroupNorm(f, sum));
  f.Result(1, "Identity", {sum});
  return done;
}

absl::StatusOr<bool> SimplifiedLayerNormalizationBody(FunctionBody& f) {
  int64_t axis = f.attrs().Int("axis");
  if (f.has_rank(0) && axis == f.rank(0) - 1) axis = -1;
  MGE_RETURN_IF_ERROR(AddRmsNorm(f, f.input(0), f.dtype(0), 1, f.attrs().Float("epsilon"), axis, 1));
  return true;
}

absl::StatusOr<bool> SkipLayerNormalizationBody(FunctionBody& f) {
  const ValueId sum = f.Plus(f.Add("Add", {f.input(0), f.input(1)}), f.input(4));
  f.Result(3, "Identity", {sum});
  f.AddTo({f.output(0), f.output(1), f.output(2)}, "LayerNormalization", {sum, f.input(2), f.input(3)},
          OneAttribute("epsilon", f.attrs().Float("epsilon")));
  return true;
}

absl::StatusOr<bool> SkipSimplifiedLayerNormalizationBody(FunctionBody& f) {
  if (f.output(1) != kNone) return f.Unsupported("the output mean");
  const ValueId sum = f.Plus(f.Add("Add", {f.input(0), f.input(1)}), f.input(3));
  f.Result(3, "Identity", {sum});
  MGE_RETURN_IF_ERROR(AddRmsNorm(f, sum, f.dtype(0), 2, f.attrs().Float("epsilon"), -1, 2));
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction(
        {.name = "EmbedLayerNormalization",
         .doc =
             "LayerNormalization of the sum of the embeddings of words, positions and segments. Output 1 counts the words.",
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
         .body = EmbedLayerNormalizationBody,
         .examples =
             {"(int32[2,3]<1,2,3,0,4,1>, int32[2,3]<0,0,1,0,1,1>, T[5,37], T[7,37], T[2,37], T[37], T[37], "
              "int32[2,3]<1,1,0,1,1,1>) -> 3",
              "(int32[1,3]<1,2,3>, _, T[5,37], T[7,37], _, T[37], T[37], _, int32[1,3]<6,0,1>) {epsilon=0.001} -> 2"}}),
    MicrosoftFunction({.name = "GroupNorm",
                       .doc = "Normalizes each group of channels, scales and shifts. The activation 1 is x * sigmoid(x).",
                       .inputs = {{"X", kFloating}, {"gamma", kFloating}, {"beta", kFloating}},
                       .attrs = {{"activation", AttrType::kInt, Presence::kRequired, "1: Swish follows"},
                                 {"channels_last", 1, "not 0: the channels are the last axis"},
                                 {"epsilon", 1e-5f, "added to the variance"},
                                 {"groups", AttrType::kInt, Presence::kRequired, "the number of groups of channels"}},
                       .body = [](FunctionBody& f) { return AddGroupNorm(f, f.input(0)); },
                       .examples = {"(T[2,3,5,4], T[4], T[4]) {groups=2, activation=1}",
                                    "(T[2,4,3,5], T[4], T[4]) {groups=2, activation=0, channels_last=0}"}}),
    MicrosoftFunction({.name = "SkipGroupNorm",
                       .doc = "GroupNorm of X + skip + bias.",
                       .inputs = {{"X", kFloating},
                                  {"gamma", kFloating},
                                  {"beta", kFloating},
                                  {"skip", kFloating},
                                  {"bias", kFloating, Arity::kOptional}},
                       .outputs = {{"Y"}, {"S", kAnyType, Arity::kOptional}},
                       .attrs = {{"activation", AttrType::kInt, Presence::kRequired, "1: Swish follows"},
                                 {"channels_last", 1, "not 0: the channels are the last axis"},
                                 {"epsilon", 1e-5f, "added to the variance"},
                                 {"groups", AttrType::kInt, Presence::kRequired, "the number of groups of channels"}},
                       .body = SkipGroupNormBody,
                       .examples = {"(T[2,3,5,4], T[4], T[4], T[2,3,5,4], T[4]) {groups=2, activation=1} -> 2",
                                    "(T[2,4,3,5], T[4], T[4], T[2,4]) {groups=2, activation=0, channels_last=0}"}}),
    // ONNX Runtime has it in the domain of ONNX.
    {.name = "SimplifiedLayerNormalization",
     .doc = "RMSNormalization, as ONNX Runtime named it before ONNX had it.",
     .inputs = {{"X", kFloating}, {"scale", kFloating}},
     .outputs = {{"Y"}, {"inv_std_var", kAnyType, Arity::kOptional}},
     .attrs = {AxisOf({"axis", -1, "the first axis that is normalized"}),
               {"epsilon", 1e-5f, "added to the variance"},
               {"stash_type", 1, "the element type of the statistics"}},
     .infer = InferByBody,
     .eval = EvalByBody,
     .body = SimplifiedLayerNormalizationBody,
     .examples = {"(T[3,37], T[37])", "(T[2,3,5], T[3,5]) {axis=1}", "(T[2,3,37], T[37]) {axis=2} -> 2"}},
    MicrosoftFunction(
        {.name = "SkipLayerNormalization",
         .doc = "LayerNormalization of input + skip + bias over the last dimension.",
         .inputs = {{"input", kFloating},
                    {"skip", kFloating},
                    {"gamma", kFloating},
                    {"beta", kFloating, Arity::kOptional},
                    {"bias", kFloating, Arity::kOptional}},
         .outputs = {{"output"},
                     {"mean", kAnyType, Arity::kOptional},
                     {"inv_std_var", kAnyType, Arity::kOptional},
                     {"input_skip_bias_sum", kAnyType, Arity::kOptional}},
         .attrs = {{"epsilon", 1e-12f, "added to the variance"}},
         .body = SkipLayerNormalizationBody,
         .examples = {"(T[2,3,37], T[2,3,37], T[37], T[37], T[37])", "(T[2,3,37], T[3,37], T[37]) {epsilon=0.001} -> 4"}}),
    MicrosoftFunction(
        {.name = "SkipSimplifiedLayerNormalization",
         .doc = "RMSNormalization of input + skip + bias over the last dimension.",
         .inputs = {{"input", kFloating}, {"skip", kFloating}, {"gamma", kFloating}, {"bias", kFloating, Arity::kOptional}},
         .outputs = {{"output"},
                     {"mean", kAnyType, Arity::kOptional},
                     {"inv_std_var", kAnyType, Arity::kOptional},
                     {"input_skip_bias_sum", kAnyType, Arity::kOptional}},
         .attrs = {{"epsilon", 1e-12f, "added to the variance"}},
         .body = SkipSimplifiedLayerNormalizationBody,
         .examples = {"(T[2,3,37], T[2,3,37], T[37], T[37])", "(T[2,3,37], T[2,3,37], T[37]) {epsilon=0.001}"}}),
};

}  // namespace

MGE_OPS(fused_normalization) = kRows;

}  // namespace mge::op_fused_normalization
