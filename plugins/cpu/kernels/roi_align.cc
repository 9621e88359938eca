// SPDX-License-Identifier: Apache-2.0
// RoiAlign of channels-last images, float32. All channels of a sample point are computed at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/blend.h"

namespace mge::cpu {
namespace {

constexpr double kMaxPoints = 1 << 20;  // limit along an axis of a region; the reference evaluator has the same

struct Args {
  const BlendTable* table;
  Slot x, rois, images, y, workspace;
  int64_t batch, channels, height, width, regions;
  int64_t rows, columns;  // bins per region
  int64_t ratio;          // points per bin along an axis; 0: one per pixel
  double scale, offset;
  bool average, at_least_one;  // at_least_one: a region is at least one pixel large
  bool plain;                  // the output is (region, channel, row, column)
  Chunks chunks;               // chunks of regions
};

// One axis of a region.
struct Span {
  double begin, bin;
  int64_t points;  // per bin
  double at(int64_t i, int64_t g) const {
    return begin + static_cast<double>(i) * bin + (static_cast<double>(g) + 0.5) * bin / static_cast<double>(points);
  }
};

// Returns the axis of a region. `points` is -1 if there are too many.
Span SpanOf(const Args& a, double begin, double end, int64_t bins) {
  begin = begin * a.scale - a.offset;
  double extent = end * a.scale - a.offset - begin;
  if (a.at_least_one) extent = std::max(extent, 1.0);
  Span s = {begin, extent / static_cast<double>(bins), -1};
  double points = a.ratio > 0 ? static_cast<double>(a.ratio) : std::ceil(s.bin);
  if (points * static_cast<double>(bins) <= kMaxPoints) s.points = std::max<int64_t>(0, static_cast<int64_t>(points));
  return s;
}

// The two pixels around a position and their weights, which are 0 outside of the image.
struct Neighbours {
  int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};
Neighbours Around(double at, int64_t size) {
  if (!(at >= -1.0 && at <= static_cast<double>(size))) return {};
  at = std::max(at, 0.0);
  auto low = static_cast<int64_t>(at);
  if (low >= size - 1) return {size - 1, size - 1, 1, 0};
  double rest = at - static_cast<double>(low);
  return {low, low + 1, 1 - rest, rest};
}

// Computes all channels of one bin.
void PoolBin(const Args& a, const float* image, const Span& ys, const Span& xs, int64_t i, int64_t j, float* out) {
  int64_t count = ys.points * xs.points;
  std::fill_n(out, a.channels, a.average || count == 0 ? 0.0f : -std::numeric_limits<float>::infinity());
  double share = a.average ? 1.0 / static_cast<double>(std::max<int64_t>(count, 1)) : 1.0;
  for (int64_t gy = 0; gy < ys.points; ++gy) {
    Neighbours y = Around(ys.at(i, gy), a.height);
    for (int64_t gx = 0; gx < xs.points; ++gx) {
      Neighbours x = Around(xs.at(j, gx), a.width);
      auto pixel = [&](int64_t row, int64_t column) { return image + (row * a.width + column) * a.channels; };
      auto weight = [&](double wy, double wx) { return static_cast<float>(wy * wx * share); };
      Pixels point = {4,
                      {pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low), pixel(y.high, x.high)},
                      {weight(y.low_weight, x.low_weight), weight(y.low_weight, x.high_weight),
                       weight(y.high_weight, x.low_weight), weight(y.high_weight, x.high_weight)}};
      (a.average ? a.table->add : a.table->raise)(point, a.channels, out);
    }
  }
}

Span RowsOf(const Args& a, const float* roi) { return SpanOf(a, roi[1], roi[3], a.rows); }
Span ColumnsOf(const Args& a, const float* roi) { return SpanOf(a, roi[0], roi[2], a.columns); }

mge_code Check(const Args& a, const mge_run* run) {
  auto* rois = At<const float>(run, a.rois);
  auto* images = At<const int64_t>(run, a.images);
  for (int64_t r = 0; r < a.regions; ++r) {
    if (images[r] < 0 || images[r] >= a.batch) {
      return Report(run->error, MGE_OUT_OF_RANGE,
                    "RoiAlign: batch_indices[" + std::to_string(r) + "] = " + std::to_string(images[r]) +
                        " is outside of the batch of " + std::to_string(a.batch));
    }
    if (RowsOf(a, rois + 4 * r).points < 0 || ColumnsOf(a, rois + 4 * r).points < 0) {
      return Report(run->error, MGE_INVALID_ARGUMENT,
                    "RoiAlign: region " + std::to_string(r) + " needs more than 2^20 sample points");
    }
  }
  return MGE_OK;
}

mge_code Launch(const Args& a, const mge_run* run) {
  if (mge_code code = Check(a, run); code != MGE_OK) return code;
  auto* x = At<const float>(run, a.x);
  auto* rois = At<const float>(run, a.rois);
  auto* images = At<const int64_t>(run, a.images);
  auto* y = At<float>(run, a.y);
  auto* workspace = At<float>(run, a.workspace);
  const int64_t bins = a.rows * a.columns, region = bins * a.channels;
  ParallelFor(run, a.chunks.count, [&](uint64_t chunk) {
    for (auto r = static_cast<int64_t>(a.chunks.begin(chunk)); r < static_cast<int64_t>(a.chunks.end(chunk)); ++r) {
      const float* image = x + images[r] * a.height * a.width * a.channels;
      Span ys = RowsOf(a, rois + 4 * r), xs = ColumnsOf(a, rois + 4 * r);
      float* to = a.plain ? workspace + static_cast<int64_t>(chunk) * region : y + r * region;
      for (int64_t b = 0; b < bins; ++b) PoolBin(a, image, ys, xs, b / a.columns, b % a.columns, to + b * a.channels);
      if (!a.plain) continue;
      for (int64_t c = 0; c < a.channels; ++c) {
        for (int64_t b = 0; b < bins; ++b) y[r * region + c * bins + b] = to[b * a.channels + c];
      }
    }
  });
  return MGE_OK;
}

double SerialUs(const Args& a, Isa isa) {
  double lanes = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  double points = static_cast<double>(a.ratio > 0 ? a.ratio * a.ratio : 4);
  double bins = static_cast<double>(a.regions * a.rows * a.columns);
  return bins * points * (0.03 + 2.5e-3 * std::ceil(static_cast<double>(a.channels) / lanes)) +
         (a.plain ? 1e-3 * bins * static_cast<double>(a.channels) : 0);
}

Result Build(const Problem& p, bool plain, Isa isa, Args* a) {
  Node n = p.node();
  Value x = n.input(0), rois = n.input(1), images = n.input(2), y = n.output(0);
  if (x.dtype() != MGE_DTYPE_F32 || rois.dtype() != MGE_DTYPE_F32 || images.dtype() != MGE_DTYPE_I64) {
    return {MGE_UNIMPLEMENTED, "only float32"};
  }
  if (x.is_constant()) return {MGE_UNIMPLEMENTED, "the image is a constant, which is always plain"};
  if (x.elements() == 0 || y.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  std::string_view mode = n.Word("mode"), shift = n.Word("coordinate_transformation_mode");
  if ((mode != "avg" && mode != "max") || (shift != "half_pixel" && shift != "output_half_pixel")) {
    return {MGE_UNIMPLEMENTED, "only modes avg and max, half_pixel and output_half_pixel"};
  }
  *a = {};
  a->table = &Blend(isa);
  a->batch = x.dim(0);
  a->channels = x.dim(1);
  a->height = x.dim(2);
  a->width = x.dim(3);
  a->regions = y.dim(0);
  a->rows = y.dim(2);
  a->columns = y.dim(3);
  a->ratio = n.Int("sampling_ratio");
  a->scale = static_cast<double>(n.Float("spatial_scale"));
  a->at_least_one = shift == "output_half_pixel";
  a->offset = a->at_least_one ? 0.0 : 0.5;
  a->average = mode == "avg";
  a->plain = plain;
  a->chunks = SplitWork(static_cast<uint64_t>(a->regions), SerialUs(*a, isa) / static_cast<double>(a->regions));
  return {};
}

uint64_t WorkspaceOf(const Args& a) {
  return a.plain ? a.chunks.count * static_cast<uint64_t>(a.rows * a.columns * a.channels) * sizeof(float) : 0;
}

class RoiAlignKernel : public Kernel {
 public:
  RoiAlignKernel(const Problem& p, const Args& args) : args_(args) {
    for (int i = 0; i < 3; ++i) inputs_[i] = p.operand(0, i);
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return WorkspaceOf(args_); }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->x = b.input(inputs_[0]);
    a->rois = b.input(inputs_[1]);
    a->images = b.input(inputs_[2]);
    a->y = b.output(0);
    a->workspace = b.workspace();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Args args_;
  int inputs_[3];
};

enum Kind : uint32_t { kLast = 0, kPlain = 1 };

struct RoiAlignRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Isa isa = AllowedIsa();
    for (Kind kind : {kLast, kPlain}) {
      Args a;
      if (Result r = Build(p, kind == kPlain, isa, &a); !r.ok()) return offers.Refuse(r.text());
      Candidate c = {.id = kind == kPlain ? "cpu.roi_align.plain" : "cpu.roi_align",
                     .attributes = kExact,
                     .workspace = WorkspaceOf(a),
                     .variant = kind};
      c.cost_us = RunUs(p, SerialUs(a, isa));
      c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
      c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(4);
      c.outputs = {kind == kPlain ? PlainLayout() : ChannelsLast(4)};
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Args a;
    if (!Build(p, KindOf(c) == kPlain, IsaOf(c), &a).ok()) return nullptr;
    return std::make_unique<RoiAlignKernel>(p, a);
  }
};

constexpr KernelRow kRows[] = {Row<RoiAlignRow>("RoiAlign")};

}  // namespace

MGE_KERNELS(roi_align) = kRows;

}  // namespace mge::cpu
