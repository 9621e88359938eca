// SPDX-License-Identifier: Apache-2.0
// Conv with one to three spatial dimensions, float32, channels last, alone or with an epilogue. Either a matrix product
// whose rows are the windows of the image, or depthwise loops, which a group of few channels runs once for each of them.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "support/conv_threads.h"
#include "support/convolution.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "vec/depthwise.h"

namespace mge::cpu {
namespace {

// Transposes (outputs, channels, taps) to (taps, channels, outputs), the matrix that the product reads.
void TransposeFilter(const float* source, int64_t outputs, int64_t channels, int64_t taps, float* out) {
  constexpr int64_t kBlock = 16;  // outputs that are read side by side, so that each cache line is read once
  for (int64_t first = 0; first < outputs; first += kBlock) {
    const int64_t last = std::min(outputs, first + kBlock);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        float* row = out + (t * channels + c) * outputs;
        for (int64_t o = first; o < last; ++o) row[o] = source[(o * channels + c) * taps + t];
      }
    }
  }
}

// Packs all groups. If there is a single tap, no transposed copy is needed.
void PackFilter(const GemmTable& table, const Convolution& c, const float* source, float* scratch, float* out) {
  int64_t n = c.outputs / c.groups, k = c.k(), taps = c.taps();
  int64_t panels = (n + table.columns - 1) / table.columns, floats = PackedFloats(k, n, table.columns);
  for (int64_t g = 0; g < c.groups; ++g) {
    const float* filter = source + g * n * k;
    if (taps == 1) {
      table.pack(filter, MGE_DTYPE_F32, 1, k, k, n, 1.0f, out + g * floats, 0, panels);
    } else {
      TransposeFilter(filter, n, c.windows.channels, taps, scratch);
      table.pack(scratch, MGE_DTYPE_F32, n, 1, k, n, 1.0f, out + g * floats, 0, panels);
    }
  }
}

// Transposes (images, channels, pixels) to (images, pixels, channels).
void PackImages(const float* source, int64_t images, int64_t channels, int64_t pixels, float* out) {
  for (int64_t i = 0; i < images; ++i) {
    int64_t at = i * channels * pixels;
    TransposeFilter(source + at, channels, 1, pixels, out + at);
  }
}

struct Operands {
  Slot x, weights, bias, add, y, workspace;  // bias and add: only if the convolution has them
};

Operands OperandsOf(const Convolution& c, const Binding& b) {
  return {b.input(c.x), b.input(c.weights), c.bias >= 0 ? b.input(c.bias) : Slot(), c.add >= 0 ? b.input(c.add) : Slot(),
          b.output(0),  b.workspace()};
}

// The base of both kernels. Packs constants in advance, in the order in which the loops read them.
class ConvKernel : public Kernel {
 public:
  uint64_t prepack_bytes(int input) const override {
    if (input == conv_.weights) return conv_.weights_constant ? packed_bytes_ : 0;
    if (input == conv_.x && conv_.x_constant) return BytesOf(conv_.images * conv_.in_pixels() * conv_.channels);
    if (input == conv_.add && conv_.add_constant) return BytesOf(conv_.rows() * conv_.outputs);
    return 0;
  }
  Result Prepack(int input, const void* source, void* destination) override {
    auto* from = static_cast<const float*>(source);
    auto* to = static_cast<float*>(destination);
    if (input == conv_.weights) {
      PackWeights(from, to);
    } else if (input == conv_.x) {
      PackImages(from, conv_.batch, conv_.channels, PixelsOf(input), to);
    } else {
      PackImages(from, conv_.batch, conv_.outputs, PixelsOf(input), to);
    }
    return {};
  }
  std::string prepack_form(int input) const override {
    if (input == conv_.weights) return weights_form();
    return FormOf("channels last", {conv_.batch, input == conv_.x ? conv_.channels : conv_.outputs, PixelsOf(input)});
  }

 protected:
  // Returns the name of a packed form, such as "panels 64,3,3".
  static std::string FormOf(std::string_view name, std::initializer_list<int64_t> sizes) {
    std::string form(name);
    for (int64_t size : sizes) form += (form.size() == name.size() ? " " : ",") + std::to_string(size);
    return form;
  }
  explicit ConvKernel(const Convolution& conv) : conv_(conv) {}
  static uint64_t BytesOf(int64_t floats) { return static_cast<uint64_t>(floats) * sizeof(float); }
  // Returns the pixels per element of the batch, for the image or the addend.
  int64_t PixelsOf(int input) const {
    return conv_.images / conv_.batch * (input == conv_.x ? conv_.in_pixels() : conv_.out_pixels());
  }
  virtual void PackWeights(const float* source, float* out) = 0;
  virtual std::string weights_form() const = 0;

  const Convolution conv_;
  uint64_t packed_bytes_ = 0;  // bytes of the packed filter
};

// ---------------------------------------------------------------- as a product

struct GemmArgs {
  const GemmTable* table;
  const Convolution* conv;
  GemmTask task;    // for one group
  GemmSplit split;  // the batch is the groups
  int64_t group_outputs, group_floats;
  bool pointwise, packs;
  uint64_t scratch_offset;
  uint64_t threads;  // ConvThreads()
  Operands on;
};

mge_code LaunchGemm(const GemmArgs& s, const mge_run* run) {
  const Convolution& c = *s.conv;
  const float* packed = At<float>(run, s.on.weights);
  if (s.packs) {
    char* workspace = At<char>(run, s.on.workspace);
    PackFilter(*s.table, c, packed, reinterpret_cast<float*>(workspace + s.scratch_offset),
               reinterpret_cast<float*>(workspace));
    packed = reinterpret_cast<float*>(workspace);
  }
  const float* x = At<float>(run, s.on.x);
  const float* bias = c.bias >= 0 ? At<float>(run, s.on.bias) : nullptr;
  const float* add = c.add >= 0 ? At<float>(run, s.on.add) : nullptr;
  float* y = At<float>(run, s.on.y);
  ForConvChunks(run, s.threads, s.split, [&](int64_t group, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    GemmTask t = s.task;
    t.a.data = x + group * c.windows.channels;
    t.a.windows = s.pointwise ? nullptr : &c.windows;
    t.b = packed + group * s.group_floats;
    t.c = y + group * s.group_outputs;
    if (bias) t.bias = bias + group * s.group_outputs;
    if (add) t.add = add + group * s.group_outputs;
    s.table->run(t, m0, m1, p0, p1);
  });
  return MGE_OK;
}

GemmSize SizeOf(const Convolution& c) { return {c.rows(), c.outputs / c.groups, c.k(), c.groups}; }

double ActivationUs(const Convolution& c, Isa isa) {
  return ActivationUs(c.epilogue.activation, static_cast<double>(c.rows() * c.outputs), isa);
}

double GemmUs(const Convolution& c, Isa isa) {
  // The cost of copying a window depends on its contiguous runs: short ones (few channels, a narrow filter) cost more per
  // element, and those of a volume most.
  double run =
      static_cast<double>(c.groups == 1 && c.windows.dw == 1 ? c.windows.kw * c.windows.channels : c.windows.channels);
  return kGemmOwn * GemmSerialUs(SizeOf(c), isa, c.pointwise() ? 0.03 : 0.05 + (c.windows.kd > 1 ? 8.0 : 2.0) / run) +
         ActivationUs(c, isa);
}

class GemmConvKernel : public ConvKernel {
 public:
  GemmConvKernel(const Convolution& conv, Isa isa) : ConvKernel(conv) {
    const GemmTable& table = Gemm(isa);
    GemmSize size = SizeOf(conv);
    args_.table = &table;
    args_.threads = ConvThreads();
    args_.conv = &conv_;
    args_.group_outputs = size.n;
    args_.group_floats = PackedFloats(size.k, size.n, table.columns);
    args_.pointwise = conv.pointwise();
    args_.split = SplitGemm(size, table.columns, GemmUs(conv, isa));
    GemmTask& t = args_.task;
    t.a = {nullptr, MGE_DTYPE_F32, conv.channels, 1, 1.0f, nullptr};
    t.m = size.m;
    t.n = size.n;
    t.k = size.k;
    t.ldc = conv.outputs;
    t.ld_add = conv.outputs;
    t.activation = conv.epilogue.activation;
    t.lo = conv.epilogue.lo;
    t.hi = conv.epilogue.hi;
    packed_bytes_ = BytesOf(args_.group_floats * conv.groups);
    scratch_bytes_ = conv.taps() == 1 ? 0 : BytesOf(size.k * size.n);
    args_.packs = !conv.weights_constant;
    args_.scratch_offset = (packed_bytes_ + 63) / 64 * 64;
  }
  uint32_t args_bytes() const override { return sizeof(GemmArgs); }
  uint64_t workspace_bytes() const override { return args_.packs ? args_.scratch_offset + scratch_bytes_ : 0; }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    (new (args) GemmArgs(args_))->on = OperandsOf(conv_, b);
    *step = StepFn::Of<LaunchGemm>();
    return {};
  }

 private:
  void PackWeights(const float* source, float* out) override {
    std::vector<float> scratch(scratch_bytes_ / sizeof(float));
    PackFilter(*args_.table, conv_, source, scratch.data(), out);
  }
  std::string weights_form() const override {
    return FormOf("filter panels", {args_.table->columns, conv_.groups, args_.task.n, conv_.windows.channels, conv_.taps()});
  }

  GemmArgs args_ = {};
  uint64_t scratch_bytes_ = 0;
};

// ---------------------------------------------------------------- depthwise

struct DepthwiseArgs {
  const DepthwiseTable* table;
  DepthwiseTask task;
  Chunks chunks;       // chunks of all parts of all rows
  Chunks repeats;      // chunks of the groups of all pixels
  int64_t passes;      // channels of a group
  int64_t multiplier;  // outputs of a group
  bool repeats_image;  // the workspace has one channel of each group, as often as the group has outputs
  uint64_t image_offset;
  bool packs, has_bias, has_add;
  uint64_t threads;  // ConvThreads()
  Operands on;
};

int64_t FilterTaps(const DepthwiseTask& t) { return t.kd * t.kh * t.kw; }

// Writes a filter (output, channel of the group, tap) as (channel, tap, output).
void PackDepthwise(const DepthwiseArgs& s, const float* source, float* out) {
  TransposeFilter(source, s.task.channels, 1, s.passes * FilterTaps(s.task), out);
}

mge_code LaunchDepthwise(const DepthwiseArgs& s, const mge_run* run) {
  DepthwiseTask t = s.task;
  const float* x = At<float>(run, s.on.x);
  const float* weights = At<float>(run, s.on.weights);
  if (s.packs) {
    float* packed = At<float>(run, s.on.workspace);
    PackDepthwise(s, weights, packed);
    weights = packed;
  }
  auto* repeated = s.repeats_image ? reinterpret_cast<float*>(At<char>(run, s.on.workspace) + s.image_offset) : nullptr;
  t.x = repeated ? repeated : x;
  t.y = At<float>(run, s.on.y);
  for (int64_t pass = 0; pass < s.passes; ++pass) {
    if (repeated) {
      ForConvChunks(run, s.threads, s.repeats, [&](uint64_t begin, uint64_t end) {
        s.table->repeat(x + pass + static_cast<int64_t>(begin) * s.passes, static_cast<int64_t>(end - begin), s.passes,
                        s.multiplier, repeated + static_cast<int64_t>(begin) * s.multiplier);
      });
    }
    t.weights = weights + pass * FilterTaps(t) * t.channels;
    t.bias = s.has_bias && pass == 0 ? At<float>(run, s.on.bias) : nullptr;
    t.add = pass > 0 ? t.y : s.has_add ? At<float>(run, s.on.add) : nullptr;
    t.activation = pass + 1 == s.passes ? s.task.activation : Activation::kNone;
    ForConvChunks(run, s.threads, s.chunks, [&](uint64_t begin, uint64_t end) {
      s.table->run(t, static_cast<int64_t>(begin), static_cast<int64_t>(end));
    });
  }
  return MGE_OK;
}

bool RepeatsImage(const Convolution& c) { return c.multiplier() > 1 || c.group_channels() > 1; }

double DepthwiseUs(const Convolution& c, Isa isa) {
  double lanes = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  double channels = std::ceil(static_cast<double>(c.outputs) / lanes) * lanes;
  double flops = 2.0 * static_cast<double>(c.rows() * c.taps()) * channels;
  double bytes = 4.0 * static_cast<double>(c.images * c.in_pixels() * c.outputs + c.rows() * c.outputs);
  // Loops of a known width keep every input in a register for all sums that use it.
  const ConvWindows& w = c.windows;
  bool unrolled = w.kh == w.kw && (w.kw == 3 || w.kw == 5) && w.sw <= 2 && w.dh == 1 && w.dw == 1;
  double per_us = isa == Isa::kAvx512 ? 80e3 : isa == Isa::kAvx2 ? 40e3 : 10e3;
  flops *= 1 + 3.0 / static_cast<double>(w.ow);  // the ends of short lines
  const double repeat = RepeatsImage(c) ? RepeatUs(c.images * c.in_pixels() * c.outputs) : 0;
  const double pass = repeat + flops / (unrolled ? per_us : 0.5 * per_us) + WindowUs(bytes);
  return 0.1 + static_cast<double>(c.group_channels()) * pass + ActivationUs(c, isa);
}

class DepthwiseKernel : public ConvKernel {
 public:
  DepthwiseKernel(const Convolution& c, Isa isa) : ConvKernel(c) {
    args_.table = &Depthwise(isa);
    args_.threads = ConvThreads();
    const ConvWindows& w = c.windows;
    args_.task = {nullptr,
                  nullptr,
                  nullptr,
                  nullptr,
                  nullptr,
                  c.outputs,
                  w.h,
                  w.w,
                  w.kh,
                  w.kw,
                  w.sh,
                  w.sw,
                  w.ph,
                  w.pw,
                  w.dh,
                  w.dw,
                  w.oh,
                  w.ow,
                  w.d,
                  w.kd,
                  w.sd,
                  w.pd,
                  w.dd,
                  w.od,
                  1,
                  c.epilogue.activation,
                  c.epilogue.lo,
                  c.epilogue.hi};
    int64_t rows = c.images * w.od * w.oh;
    constexpr int64_t kMinPixels = 16;  // per part: its ends cost more than its middle
    args_.task.parts =
        std::clamp<int64_t>(w.ow / kMinPixels, 1, std::max<int64_t>(1, static_cast<int64_t>(kMaxChunks) / rows));
    auto parts = static_cast<uint64_t>(rows * args_.task.parts);
    args_.passes = c.group_channels();
    args_.chunks = SplitWork(parts, DepthwiseUs(c, isa) / static_cast<double>(parts * static_cast<uint64_t>(args_.passes)));
    args_.packs = !c.weights_constant;
    args_.has_bias = c.bias >= 0;
    args_.has_add = c.add >= 0;
    packed_bytes_ = BytesOf(c.outputs * c.k());
    args_.multiplier = c.multiplier();
    args_.repeats_image = RepeatsImage(c);
    const int64_t elements = c.images * c.in_pixels() * c.groups, repeated = elements * c.multiplier();
    args_.repeats = SplitWork(static_cast<uint64_t>(elements), RepeatUs(repeated) / static_cast<double>(elements));
    args_.image_offset = args_.packs ? (packed_bytes_ + 63) / 64 * 64 : 0;
    workspace_bytes_ = args_.image_offset + (args_.repeats_image ? BytesOf(repeated) : 0);
  }
  uint32_t args_bytes() const override { return sizeof(DepthwiseArgs); }
  uint64_t workspace_bytes() const override { return workspace_bytes_; }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    (new (args) DepthwiseArgs(args_))->on = OperandsOf(conv_, b);
    *step = StepFn::Of<LaunchDepthwise>();
    return {};
  }

 private:
  void PackWeights(const float* source, float* out) override { PackDepthwise(args_, source, out); }
  std::string weights_form() const override { return FormOf("depthwise", {conv_.outputs, conv_.k()}); }

  DepthwiseArgs args_ = {};
  uint64_t workspace_bytes_ = 0;
};

// ---------------------------------------------------------------- the row

enum Kind : uint32_t { kProduct = 0, kDepthwise = 1 };

struct ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Convolution conv;
    if (Result r = FindConvolution(p, &conv); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    auto offer = [&](Kind kind, std::string_view id, double us, uint64_t workspace) {
      Candidate c = {.id = std::string(id), .attributes = kExact, .workspace = workspace, .variant = kind};
      c.cost_us = ConvRunUs(p, us + (conv.add >= 0 ? StreamUs(static_cast<double>(p.output(0).bytes())) : 0));
      c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
      const mge_layout last = ChannelsLast(conv.rank);
      if (!conv.x_constant) c.inputs[static_cast<size_t>(conv.x)] = last;
      if (conv.add >= 0 && !conv.add_constant) c.inputs[static_cast<size_t>(conv.add)] = last;
      c.outputs = {last};
      if (conv.add >= 0 && conv.add != conv.x && !conv.add_constant)
        c.in_place.push_back({0, static_cast<uint32_t>(conv.add)});
      Add(offers, isa, std::move(c));
    };
    if (conv.depthwise() || (conv.groups > 1 && conv.group_channels() <= kMaxGroupPasses)) {
      double us = DepthwiseUs(conv, isa);
      offer(kDepthwise, conv.depthwise() ? "cpu.conv.depthwise" : "cpu.conv.grouped", us,
            DepthwiseKernel(conv, isa).workspace_bytes());
    }
    if (conv.depthwise()) return;
    offer(kProduct, conv.pointwise() ? "cpu.conv.pointwise" : "cpu.conv.windows", GemmUs(conv, isa),
          GemmConvKernel(conv, isa).workspace_bytes());
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Convolution conv;
    if (!FindConvolution(p, &conv).ok()) return nullptr;
    if (KindOf(c) == kDepthwise) return std::make_unique<DepthwiseKernel>(conv, IsaOf(c));
    return std::make_unique<GemmConvKernel>(conv, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<ConvRow>("Conv")};

}  // namespace

MGE_KERNELS(conv) = kRows;

}  // namespace mge::cpu
