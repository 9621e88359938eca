// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_non_max_suppression {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float Area() const { return (y2 - y1) * (x2 - x1); }
  // Returns true if the box has an area. A box without an area overlaps no other.
  bool IsSolid() const { return y2 > y1 && x2 > x1 && Area() > 0; }
};

Box ReadBox(const float* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  // The two corners may be any pair of opposite corners.
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

// Returns a key that sorts by descending score, then by ascending index.
uint64_t SortKey(float score, int64_t index) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // adding 0 converts -0 to +0
  uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(~ascending) << 32 | static_cast<uint32_t>(index);
}

// Sorts a list from its beginning, as far as it is read: few of the scores of a class are usually read.
class LazyOrder {
 public:
  LazyOrder(std::span<uint64_t> keys, int64_t first) : keys_(keys), step_(first) {}
  // Returns the key at position i; i grows by at most one from call to call.
  uint64_t operator[](int64_t i) {
    if (i >= sorted_) {
      const int64_t size = static_cast<int64_t>(keys_.size()), end = std::min(size, sorted_ + step_);
      if (end < size) std::nth_element(keys_.begin() + sorted_, keys_.begin() + end, keys_.end());
      std::sort(keys_.begin() + sorted_, keys_.begin() + end);
      sorted_ = end;
      step_ *= 2;
    }
    return keys_[static_cast<size_t>(i)];
  }

 private:
  std::span<uint64_t> keys_;
  int64_t sorted_ = 0, step_;
};

// The solid boxes kept so far, sorted into cells along x by their left edge. A cell is at least as wide as every box.
// Therefore a box overlaps only boxes from two cells before its left edge (one for rounding) to the cell of its right
// edge. Exporters place the boxes of different classes apart, so few boxes are compared.
class KeptBoxes {
 public:
  // Allocates memory for lists of at most n boxes.
  static absl::StatusOr<KeptBoxes> Create(EvalContext& ctx, int64_t n, float threshold) {
    KeptBoxes kept;
    kept.threshold_ = threshold;
    for (Tensor& column : kept.columns_) {
      MGE_ASSIGN_OR_RETURN(column, Scratch<float>(ctx, n));
    }
    kept.cells_.resize(kMaxCells);
    return kept;
  }

  // Starts a list: computes the cells for these boxes and removes all kept boxes.
  template <typename BoxOf>
  void Reset(int64_t count, BoxOf box_of) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float widest = 0, low = kInfinity, high = -kInfinity;
    for (int64_t i = 0; i < count; ++i) {
      const Box b = box_of(i);
      if (!b.IsSolid()) continue;
      widest = std::max(widest, b.x2 - b.x1);
      low = std::min(low, b.x1);
      high = std::max(high, b.x1);
    }
    low_ = low;
    cell_width_ = std::max(widest, (high - low) / (kMaxCells - 1));
    if (!std::isfinite(low_) || !std::isfinite(cell_width_)) cell_width_ = 0;  // one cell for all
    std::fill(cells_.begin(), cells_.end(), Cell());
    for (int64_t i = 0; i < count; ++i) {
      const Box b = box_of(i);
      if (b.IsSolid()) ++cells_[CellOf(b.x1)].begin;
    }
    int64_t begin = 0;
    for (Cell& cell : cells_) {
      cell.begin = std::exchange(begin, begin + cell.begin);
      cell.end = cell.begin;
    }
  }
  // Starts a list of few boxes, which need no cells.
  void Reset() {
    cell_width_ = 0;
    cells_[0] = Cell();
  }
  void Add(const Box& b) {
    if (!b.IsSolid()) return;
    const int64_t at = cells_[CellOf(b.x1)].end++;
    const float values[] = {b.y1, b.x1, b.y2, b.x2, b.Area()};
    for (int k = 0; k < 5; ++k) columns_[k].MutableData<float>()[at] = values[k];
  }
  // Returns true if the intersection with a kept box is larger than the threshold's fraction of their union.
  bool Suppress(const Box& b) const {
    if (!b.IsSolid()) return false;
    const size_t own = CellOf(b.x1), last = CellOf(b.x2);
    for (size_t cell = own < 2 ? 0 : own - 2; cell <= last; ++cell) {
      if (Overlaps(b, cells_[cell].begin, cells_[cell].end)) return true;
    }
    return false;
  }

 private:
  static constexpr int kMaxCells = 1024;
  struct Cell {
    int64_t begin = 0, end = 0;  // positions in the columns
  };

  size_t CellOf(float x) const {
    if (!(cell_width_ > 0)) return 0;
    return static_cast<size_t>(std::clamp((x - low_) / cell_width_, 0.0f, static_cast<float>(kMaxCells - 1)));
  }
  bool Overlaps(const Box& b, int64_t begin, int64_t end) const {
    constexpr int64_t kTogether = 16;  // boxes compared together, without branches
    const float *y1 = columns_[0].Data<float>().data(), *x1 = columns_[1].Data<float>().data(),
                *y2 = columns_[2].Data<float>().data(), *x2 = columns_[3].Data<float>().data(),
                *area = columns_[4].Data<float>().data();
    const float own = b.Area(), threshold = threshold_;
    auto overlaps = [&](int64_t i) {
      const float height = (b.y2 < y2[i] ? b.y2 : y2[i]) - (b.y1 > y1[i] ? b.y1 : y1[i]);
      const float width = (b.x2 < x2[i] ? b.x2 : x2[i]) - (b.x1 > x1[i] ? b.x1 : x1[i]);
      const float both = (height > 0 ? height : 0) * (width > 0 ? width : 0);
      return both / (own + area[i] - both) > threshold ? 1 : 0;
    };
    int64_t i = begin;
    for (; i + kTogether <= end; i += kTogether) {
      int found = 0;
      for (int64_t k = 0; k < kTogether; ++k) found |= overlaps(i + k);
      if (found) return true;
    }
    for (; i < end; ++i) {
      if (overlaps(i)) return true;
    }
    return false;
  }

  float threshold_ = 0, low_ = 0, cell_width_ = 0;
  Tensor columns_[5];  // y1, x1, y2, x2, area
  std::vector<Cell> cells_;
};

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
    return ctx.Invalid(fmt::format("iou_threshold is {}; it must be in [0, 1]", iou_threshold));
  }
  const bool center = ctx.attrs().Int("center_point_box") == 1;
  const int64_t batches = scores.shape()[0], classes = scores.shape()[1], n = scores.shape()[2];
  const int64_t limit = std::clamp<int64_t>(most, 0, n);
  if (n > std::numeric_limits<uint32_t>::max()) return ctx.Unsupported("more than 2^32 boxes");

  // Keeps at most `limit` boxes of each class. The scores' size limits the memory.
  MGE_ASSIGN_OR_RETURN(Tensor order_tensor, Scratch<uint64_t>(ctx, n));
  MGE_ASSIGN_OR_RETURN(Tensor kept_tensor, Scratch<int64_t>(ctx, limit ? scores.elements() : 0));
  MGE_ASSIGN_OR_RETURN(Tensor count_tensor, Scratch<int64_t>(ctx, n ? batches * classes : 0));
  MGE_ASSIGN_OR_RETURN(KeptBoxes boxes_kept, KeptBoxes::Create(ctx, limit ? n : 0, static_cast<float>(iou_threshold)));
  auto order = order_tensor.MutableData<uint64_t>();
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
      if (score_threshold ? score[i] > *score_threshold : score[i] == score[i]) order[candidates++] = SortKey(score[i], i);
    }
    auto index_in = [](uint64_t key) { return static_cast<int64_t>(static_cast<uint32_t>(key)); };
    if (limit <= 64) {
      boxes_kept.Reset();
    } else {
      boxes_kept.Reset(candidates, [&](int64_t c) { return ReadBox(box + index_in(order[c]) * 4, center); });
    }
    LazyOrder best(order.first(static_cast<size_t>(candidates)), 2 * limit);
    for (int64_t c = 0; c < candidates && counts[list] < limit; ++c) {
      if (c % 4096 == 0) MGE_RETURN_IF_ERROR(ctx.CheckStop());
      const int64_t index = index_in(best[c]);
      const Box candidate = ReadBox(box + index * 4, center);
      if (boxes_kept.Suppress(candidate)) continue;
      boxes_kept.Add(candidate);
      kept[total++] = index;
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
    .doc = "Boxes by descending score, without those that overlap a better one too much. Rows are (batch, class, box).",
    .inputs = {{"boxes", {DType::kF32}},
               {"scores", {DType::kF32}},
               {"max_output_boxes_per_class", {DType::kI64}, Arity::kOptional},
               {"iou_threshold", {DType::kF32}, Arity::kOptional},
               {"score_threshold", {DType::kF32}, Arity::kOptional}},
    .outputs = {{"selected_indices"}},
    .attrs = {{"center_point_box", 0, "0: boxes are two corners; 1: center, width and height"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kDynamicShape,
    .since = 10};

}  // namespace mge::op_non_max_suppression
