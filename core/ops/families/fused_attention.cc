// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_attention.h"

#include <numeric>

#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool MaybeEqual(int64_t a, int64_t b) { return a == b || a == kUnknownDim || b == kUnknownDim; }

}  // namespace

ValueId FusedAttention::Filtered(ValueId keep) {
  const double filter = f_.attrs().Float("mask_filter_value");
  return f_.Add("Where", {keep, f_.Number(type_, 0), f_.Number(type_, filter)});
}

bool FusedAttention::KnowsMask(int input) const {
  if (!f_.has_input(input)) return true;
  if (!f_.has_rank(input)) return false;
  const bool is_static =
      f_.type(input).IsStatic() && batch_ != kUnknownDim && queries_ != kUnknownDim && keys_ != kUnknownDim;
  return is_static || f_.rank(input) == 2 || f_.rank(input) == 3;
}

absl::Status FusedAttention::AddMask(int input) {
  if (!f_.has_input(input)) return absl::OkStatus();
  const Shape dims = f_.dims(input);
  const ValueId mask = f_.input(input);
  const auto number = [&](int64_t n) { return f_.Number(f_.dtype(input), static_cast<double>(n)); };
  ValueId keep = kNone;
  if (dims.size() == 1 && (dims[0] == batch_ || dims[0] == 2 * batch_)) {
    std::vector<int64_t> positions(static_cast<size_t>(keys_));
    std::iota(positions.begin(), positions.end(), 0);
    const ValueId keys = f_.Cast(f_.Integers(positions), DType::kI64, f_.dtype(input));
    const bool has_starts = dims[0] != batch_;
    const std::vector<ValueId> limits =
        has_starts ? f_.Add("Split", {mask, f_.Integers({batch_, batch_})}, 2, IntAttribute("axis", 0)) : std::vector{mask};
    keep = f_.Add("Less", {keys, f_.Reshape(limits[0], {batch_, 1, 1, 1})});
    if (has_starts) {
      keep = f_.Add("And", {keep, f_.Add("GreaterOrEqual", {keys, f_.Reshape(limits[1], {batch_, 1, 1, 1})})});
    }
  } else if (dims.size() == 2 && MaybeEqual(dims[1], keys_)) {
    keep = f_.Add("Greater", {f_.Add("Unsqueeze", {mask, f_.Integers({1, 2})}), number(0)});
  } else if (dims.size() == 3 && MaybeEqual(dims[1], queries_) && MaybeEqual(dims[2], keys_)) {
    keep = f_.Add("Greater", {f_.Add("Unsqueeze", {mask, f_.Integers({1})}), number(0)});
  } else if (dims.size() == 4 && dims[1] == 1 && dims[2] >= keys_ && dims[3] >= keys_) {
    const ValueId part =
        f_.Add("Slice", {mask, f_.Integers({keys_ - queries_, 0}), f_.Integers({keys_, keys_}), f_.Integers({2, 3})});
    keep = f_.Add("Greater", {part, number(0)});
  } else {
    return f_.Unsupported(fmt::format("a mask of shape {}", ShapeText(dims)));
  }
  mask_ = f_.Plus(Filtered(keep), mask_);
  return absl::OkStatus();
}

void FusedAttention::AddBias(int input) {
  if (f_.has_input(input)) AddToScores(f_.input(input));
}

void FusedAttention::AppendToMask(ValueId column, int64_t mask_batch, int64_t heads) {
  const auto spread = [&](ValueId v, int64_t columns) {
    return f_.Add("Expand", {v, f_.Integers({mask_batch, heads, queries_, columns})});
  };
  mask_ = f_.Add("Concat", {spread(mask_, keys_), spread(column, 1)}, IntAttribute("axis", 3));
}

ValueId FusedAttention::Add(const Operands& o, Attributes attrs) {
  const ValueId y = o.y != kNone ? o.y : f_.NewValue();
  std::vector<ValueId> outputs = {y};
  outputs.insert(outputs.end(), {o.present_key, o.present_value, o.scores});
  while (outputs.back() == kNone) outputs.pop_back();
  f_.AddTo(std::move(outputs), "Attention", {o.q, o.k, o.v, mask_, o.past_key, o.past_value, o.valid_keys},
           std::move(attrs));
  return y;
}

Attributes AttentionAttributes(const FunctionBody& f, int64_t q_heads, int64_t kv_heads) {
  Attributes attrs = IntAttribute("q_num_heads", q_heads);
  attrs.Set("kv_num_heads", kv_heads);
  if (const float scale = f.attrs().Float("scale"); scale != 0) attrs.Set("scale", scale);
  return attrs;
}

absl::Status InferAttention(InferContext& ctx, int like) {
  for (int i = 0; i < ctx.output_count(); ++i) ctx.SetOutput(i, UnrankedType(ctx.input(like).dtype));
  return InferByBody(ctx);
}

}  // namespace mge
