// SPDX-License-Identifier: Apache-2.0
// DeformConv of images, float32, channels last, with a constant filter. The pixels that the taps of each output read are
// sampled into the rows of a matrix product, some rows at a time.
#include <algorithm>
#include <cmath>

#include "mge/plugin/problems/conv.hpp"
#include "support/gemm.h"
#include "support/kernel.h"
#include "vec/blend.h"

namespace mge::cpu {
namespace {

enum Input { kX, kW, kOffset, kBias, kMask };

struct Args {
  const GemmTable* gemm;
  const BlendTable* blend;
  GemmTask product;  // of one group and `rows` rows
  GemmSplit split;   // the batch is the groups
  ConvWindows windows;
  int64_t images, groups, offset_groups, rows;
  int64_t out_pixels, group_outputs, group_floats;
  Chunks samples;  // chunks of `rows` rows
  bool has_bias, has_mask;
  Slot x, weights, offset, bias, mask, y, columns;

  int64_t taps() const { return windows.kh * windows.kw; }
  int64_t group_channels() const { return windows.channels; }
  int64_t channels() const { return windows.pixel; }
};

// Samples the `count` channels at `x` for a position, between four pixels. Pixels outside of the image are 0.
void Sample(const Args& a, const float* x, float row, float column, float scale, int64_t count, float* to) {
  const ConvWindows& w = a.windows;
  std::fill_n(to, count, 0.0f);
  const float top = std::floor(row), left = std::floor(column);
  if (!(top >= -1 && top < static_cast<float>(w.h) && left >= -1 && left < static_cast<float>(w.w))) return;
  const auto y0 = static_cast<int64_t>(top), x0 = static_cast<int64_t>(left);
  const float down = row - top, right = column - left;
  Pixels pixels = {};
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t py = y0 + i / 2, px = x0 + i % 2;
    const float weight = (i / 2 ? down : 1 - down) * (i % 2 ? right : 1 - right);
    if (weight == 0 || py < 0 || py >= w.h || px < 0 || px >= w.w) continue;
    pixels.pixel[pixels.count] = x + (py * w.w + px) * a.channels();
    pixels.weight[pixels.count++] = weight * scale;
  }
  if (pixels.count > 0) a.blend->add(pixels, count, to);
}

// Writes the rows first..end of the matrix: the samples of one image's outputs, ordered by group, row, tap and channel.
void SampleRows(const Args& a, const mge_run* run, int64_t image, int64_t block, int64_t first, int64_t end) {
  const ConvWindows& w = a.windows;
  const int64_t taps = a.taps(), k = taps * a.group_channels(), shared = a.channels() / a.offset_groups;
  const float* x = At<const float>(run, a.x) + image * w.h * w.w * a.channels();
  float* columns = At<float>(run, a.columns);
  // The channels between two neighbouring ends of groups, of the filter or of the offsets.
  for (int64_t c = 0, next = 0; c < a.channels(); c = next) {
    const int64_t group = c / a.group_channels(), offsets = c / shared;
    next = std::min((group + 1) * a.group_channels(), (offsets + 1) * shared);
    const int64_t plane = (image * a.offset_groups + offsets) * taps;
    const float* offset = At<const float>(run, a.offset) + plane * 2 * a.out_pixels;
    const float* mask = a.has_mask ? At<const float>(run, a.mask) + plane * a.out_pixels : nullptr;
    for (int64_t r = first; r < end; ++r) {
      const int64_t o = block + r, oy = o / w.ow, ox = o % w.ow;
      float* row = columns + (group * a.rows + r) * k + c % a.group_channels();
      for (int64_t t = 0; t < taps; ++t) {
        const auto at_y = static_cast<float>(oy * w.sh - w.ph + t / w.kw * w.dh);
        const auto at_x = static_cast<float>(ox * w.sw - w.pw + t % w.kw * w.dw);
        Sample(a, x + c, at_y + offset[2 * t * a.out_pixels + o], at_x + offset[(2 * t + 1) * a.out_pixels + o],
               mask ? mask[t * a.out_pixels + o] : 1.0f, next - c, row + t * a.group_channels());
      }
    }
  }
}

mge_code Launch(const Args& a, const mge_run* run) {
  const float* bias = a.has_bias ? At<const float>(run, a.bias) : nullptr;
  const int64_t outputs = a.groups * a.group_outputs;
  for (int64_t image = 0; image < a.images; ++image) {
    for (int64_t block = 0; block < a.out_pixels; block += a.rows) {
      const int64_t rows = std::min(a.rows, a.out_pixels - block);
      ForChunks(run, a.samples, [&](uint64_t begin, uint64_t end) {
        SampleRows(a, run, image, block, static_cast<int64_t>(begin), std::min(rows, static_cast<int64_t>(end)));
      });
      float* y = At<float>(run, a.y) + (image * a.out_pixels + block) * outputs;
      ForGemmChunks(run, a.split, [&](int64_t group, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
        GemmTask t = a.product;
        t.a.data = At<const float>(run, a.columns) + group * a.rows * t.k;
        t.b = At<const float>(run, a.weights) + group * a.group_floats;
        t.c = y + group * a.group_outputs;
        t.bias = bias ? bias + group * a.group_outputs : nullptr;
        if (m0 < rows) a.gemm->run(t, m0, std::min(m1, rows), p0, p1);
      });
    }
  }
  return MGE_OK;
}

struct Estimate {
  double sample_us, product_us;  // of one block
  double us(const Args& a) const {
    return static_cast<double>(a.images) * std::ceil(static_cast<double>(a.out_pixels) / static_cast<double>(a.rows)) *
           (sample_us + product_us);
  }
};

Result Build(const Problem& p, Isa isa, Args* a, Estimate* estimate) {
  const Node n = p.node();
  const Value x = n.input(kX), w = n.input(kW), y = n.output(0);
  if (x.dtype() != MGE_DTYPE_F32 || x.rank() != 4) return {MGE_UNIMPLEMENTED, "only images of float32"};
  if (!w.is_constant()) return {MGE_UNIMPLEMENTED, "the filter is not constant"};
  if (x.is_constant()) return {MGE_UNIMPLEMENTED, "the image is a constant, which is always plain"};
  if (x.elements() == 0 || y.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  for (int i = kW; i <= kMask; ++i) {
    if (n.has_input(i) && p.operand(0, i) == p.operand(0, kX))
      return {MGE_UNIMPLEMENTED, "the image is also another operand"};
  }
  ConvSizes sizes;
  WindowAxis axes[3];  // depth is that of an image
  if (Result r = ReadConv(n, x, w, y, &sizes, axes); !r.ok()) return r;
  const WindowAxis &rows = axes[1], &columns = axes[2];
  *a = {};
  a->gemm = &Gemm(isa);
  a->blend = &Blend(isa);
  a->windows = {rows.in,        columns.in,       sizes.channels, w.dim(1),       rows.kernel,
                columns.kernel, rows.stride,      columns.stride, rows.pad_begin, columns.pad_begin,
                rows.dilation,  columns.dilation, rows.out,       columns.out};
  a->images = sizes.images;
  a->groups = sizes.groups;
  a->offset_groups = n.Int("offset_group");
  a->out_pixels = rows.out * columns.out;
  a->group_outputs = sizes.outputs / sizes.groups;
  a->has_bias = n.has_input(kBias);
  a->has_mask = n.has_input(kMask);
  constexpr int64_t kMaxFloats = 1 << 20;  // of the matrix
  a->rows = std::clamp<int64_t>(kMaxFloats / (a->taps() * sizes.channels), 1, a->out_pixels);
  const GemmSize size = {a->rows, a->group_outputs, a->taps() * w.dim(1), sizes.groups};
  a->group_floats = PackedFloats(size.k, size.n, a->gemm->columns);
  a->product.a = {nullptr, MGE_DTYPE_F32, size.k, 1, 1.0f, nullptr};
  a->product.m = size.m;
  a->product.n = size.n;
  a->product.k = size.k;
  a->product.ldc = sizes.outputs;
  estimate->product_us = kGemmOwn * GemmSerialUs(size, isa);
  const auto samples = static_cast<double>(a->rows * a->taps() * std::max(a->groups, a->offset_groups));
  const double floats = static_cast<double>(a->rows * a->taps() * sizes.channels);
  estimate->sample_us = 1e-3 * (20 * samples + (isa == Isa::kPortable ? 0.8 : 0.4) * floats);
  a->split = SplitGemm(size, a->gemm->columns, estimate->product_us);
  a->samples = SplitWork(static_cast<uint64_t>(a->rows), estimate->sample_us / static_cast<double>(a->rows));
  return {};
}

class DeformConvKernel : public Kernel {
 public:
  DeformConvKernel(const Problem& p, const Args& args) : args_(args) {
    const Node n = p.node();
    for (int i = kX; i <= kMask; ++i) operands_[i] = n.has_input(i) ? p.operand(0, i) : -1;
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override {
    return static_cast<uint64_t>(args_.groups * args_.rows * args_.product.k) * sizeof(float);
  }
  uint64_t prepack_bytes(int input) const override {
    return input == operands_[kW] ? static_cast<uint64_t>(args_.groups * args_.group_floats) * sizeof(float) : 0;
  }
  std::string prepack_form(int) const override {
    return "deformed filter panels " + std::to_string(args_.gemm->columns) + "," + std::to_string(args_.groups) + "," +
           std::to_string(args_.taps());
  }
  // Packs the filter (output, channel, tap) as matrices ((tap, channel), output), one for each group.
  Result Prepack(int, const void* source, void* destination) override {
    const int64_t taps = args_.taps(), channels = args_.group_channels(), n = args_.group_outputs, k = taps * channels;
    const int64_t panels = (n + args_.gemm->columns - 1) / args_.gemm->columns;
    std::vector<float> matrix(static_cast<size_t>(k * n));
    for (int64_t g = 0; g < args_.groups; ++g) {
      const float* from = static_cast<const float*>(source) + g * n * k;
      for (int64_t o = 0; o < n; ++o) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t t = 0; t < taps; ++t)
            matrix[static_cast<size_t>((t * channels + c) * n + o)] = from[(o * channels + c) * taps + t];
        }
      }
      args_.gemm->pack(matrix.data(), MGE_DTYPE_F32, n, 1, k, n, 1.0f,
                       static_cast<float*>(destination) + g * args_.group_floats, 0, panels);
    }
    return {};
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->x = b.input(operands_[kX]);
    a->weights = b.input(operands_[kW]);
    a->offset = b.input(operands_[kOffset]);
    if (a->has_bias) a->bias = b.input(operands_[kBias]);
    if (a->has_mask) a->mask = b.input(operands_[kMask]);
    a->y = b.output(0);
    a->columns = b.workspace();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Args args_;
  int operands_[kMask + 1];
};

struct DeformConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Isa isa = AllowedIsa();
    Args a;
    Estimate estimate;
    if (Result r = Build(p, isa, &a, &estimate); !r.ok()) return offers.Refuse(r.text());
    Candidate c = {.id = "cpu.deform_conv", .attributes = kExact};
    c.workspace = DeformConvKernel(p, a).workspace_bytes();
    c.cost_us = RunUs(p, estimate.us(a));
    c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    c.inputs[static_cast<size_t>(p.operand(0, kX))] = ChannelsLast(4);
    c.outputs = {ChannelsLast(4)};
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Args a;
    Estimate estimate;
    if (!Build(p, IsaOf(c), &a, &estimate).ok()) return nullptr;
    return std::make_unique<DeformConvKernel>(p, a);
  }
};

constexpr KernelRow kRows[] = {Row<DeformConvRow>("DeformConv")};

}  // namespace

MGE_KERNELS(deform_conv) = kRows;

}  // namespace mge::cpu
