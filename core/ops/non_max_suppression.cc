// SPDX-License-Identifier: Apache-2.0
#include "core/ops/movement.h"

namespace mge {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float Area() const { return (y2 - y1) * (x2 - x1); }
};

Box ReadBox(const float* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  // The corners may be any two that lie across.
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

// Intersection over union; 0 for boxes without an area.
float Overlap(const Box& a, const Box& b) {
  float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0 && width > 0 && a.Area() > 0 && b.Area() > 0)) return 0;
  float both = height * width;
  return both / (a.Area() + b.Area() - both);
}

absl::Status CheckShapes(const Attributes& attrs, std::span<const int64_t> boxes, std::span<const int64_t> scores) {
  MGE_RETURN_IF_ERROR(RequireRank("scores", scores, 3));
  MGE_RETURN_IF_ERROR(RequireShape("boxes", boxes, Shape{scores[0], scores[2], 4}));
  int64_t center = attrs.Int("center_point_box");
  if (center != 0 && center != 1) return BadNode(fmt::format("center_point_box is {}; it must be 0 or 1", center));
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank && ctx.input(1).has_rank) {
    MGE_RETURN_IF_ERROR(CheckShapes(ctx.attrs(), ctx.input(0).dims, ctx.input(1).dims));
  }
  ctx.SetOutput(0, MakeType(DType::kI64, {kUnknownDim, 3}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& boxes = ctx.input(0);
  const Tensor& scores = ctx.input(1);
  MGE_RETURN_IF_ERROR(CheckShapes(ctx.attrs(), boxes.shape(), scores.shape()));
  int64_t most = 0;
  double iou_threshold = 0;
  std::optional<double> score_threshold;
  if (ctx.has_input(2)) {
    MGE_ASSIGN_OR_RETURN(most, ScalarInt("max_output_boxes_per_class", ctx.input(2)));
  }
  if (ctx.has_input(3)) {
    MGE_ASSIGN_OR_RETURN(iou_threshold, ScalarFloat("iou_threshold", ctx.input(3)));
  }
  if (ctx.has_input(4)) {
    MGE_ASSIGN_OR_RETURN(score_threshold, ScalarFloat("score_threshold", ctx.input(4)));
  }
  if (!(iou_threshold >= 0 && iou_threshold <= 1)) {
    return ctx.Invalid(fmt::format("iou_threshold is {}, outside of [0, 1]", iou_threshold));
  }
  const bool center = ctx.attrs().Int("center_point_box") == 1;
  const int64_t batches = scores.shape()[0], classes = scores.shape()[1], n = scores.shape()[2];
  const int64_t limit = std::clamp<int64_t>(most, 0, n);

  // At most `limit` of each class are kept: the memory is bounded by that of the scores.
  MGE_ASSIGN_OR_RETURN(Tensor order_tensor, Scratch<int64_t>(ctx, n));
  MGE_ASSIGN_OR_RETURN(Tensor kept_tensor, Scratch<int64_t>(ctx, limit ? scores.elements() : 0));
  MGE_ASSIGN_OR_RETURN(Tensor count_tensor, Scratch<int64_t>(ctx, n ? batches * classes : 0));
  auto order = order_tensor.MutableData<int64_t>();
  auto kept = kept_tensor.MutableData<int64_t>();
  auto counts = count_tensor.MutableData<int64_t>();
  Fill(count_tensor, nullptr);
  int64_t total = 0;
  for (int64_t list = 0; limit > 0 && list < batches * classes; ++list) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const float* score = scores.Data<float>().data() + list * n;
    const float* box = boxes.Data<float>().data() + list / classes * n * 4;
    int64_t candidates = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (score_threshold ? score[i] > *score_threshold : score[i] == score[i]) order[candidates++] = i;
    }
    std::sort(order.begin(), order.begin() + candidates,
              [&](int64_t a, int64_t b) { return score[a] != score[b] ? score[a] > score[b] : a < b; });
    for (int64_t c = 0; c < candidates && counts[list] < limit; ++c) {
      Box candidate = ReadBox(box + order[c] * 4, center);
      bool free = true;
      for (int64_t k = total - counts[list]; free && k < total; ++k) {
        free = !(Overlap(candidate, ReadBox(box + kept[k] * 4, center)) > iou_threshold);
      }
      if (!free) continue;
      kept[total++] = order[c];
      ++counts[list];
    }
  }

  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {total, 3}));
  auto out = y->MutableData<int64_t>();
  for (int64_t list = 0, i = 0; i < total; ++list) {
    for (int64_t k = 0; k < counts[list]; ++k, ++i) {
      out[i * 3] = list / classes;
      out[i * 3 + 1] = list % classes;
      out[i * 3 + 2] = kept[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(non_max_suppression) = {
    .name = "NonMaxSuppression",
    .doc = "Boxes by descending score, without those that overlap a better one too much; rows of (batch, class, box).",
    .inputs = {{"boxes", {DType::kF32}},
               {"scores", {DType::kF32}},
               {"max_output_boxes_per_class", {DType::kI64}, Arity::kOptional},
               {"iou_threshold", {DType::kF32}, Arity::kOptional},
               {"score_threshold", {DType::kF32}, Arity::kOptional}},
    .outputs = {{"selected_indices"}},
    .attrs = {{"center_point_box", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .traits = kDynamicShape,
    .since = 10};

}  // namespace mge
