// SPDX-License-Identifier: Apache-2.0
// ConvTranspose with one to three spatial dimensions, float32, channels last, alone or with an epilogue. A matrix product
// computes the contribution of each input pixel through each tap. Then each output pixel sums its contributions.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>

#include "mge/plugin/problems/conv.hpp"
#include "support/conv_threads.h"
#include "support/convolution.h"
#include "support/epilogue.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "vec/col2im.h"
#include "vec/depthwise.h"

namespace mge::cpu {
namespace {

struct Transposed {
  int64_t images = 0, channels = 0, outputs = 0, groups = 1;  // channels and outputs per group
  int rank = 4;                                               // rank of the operands
  WindowAxis axes[3];                                         // depth, height, width; missing ones have size 1
  int x = -1, weights = -1, bias = -1, add = -1;              // operand numbers; bias and add are -1 if absent
  bool weights_constant = false;
  bool by_channel = false;  // convolves each channel of the groups alone, and sums the results
  Epilogue epilogue;

  int64_t in_pixels() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
  // Every channel has filters of its own. If a group has several channels or outputs, one channel of each group is repeated for all
  // its outputs.
  bool depthwise() const { return groups > 1 && (channels == 1 || by_channel); }
  bool repeats() const { return depthwise() && (outputs > 1 || channels > 1); }
  int64_t passes() const { return depthwise() ? channels : 1; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t image_columns() const {  // in floats
    if (depthwise()) return repeats() ? in_pixels() * groups * outputs : 0;
    return in_pixels() * groups * taps() * outputs;
  }
  // Returns the number of images whose columns are computed at once.
  int64_t images_at_once() const {
    constexpr int64_t kMaxFloats = 4 << 20;
    int64_t n = images;
    while (n % 2 == 0 && n * image_columns() > kMaxFloats) n /= 2;
    return n * image_columns() > kMaxFloats ? 1 : n;
  }
  GemmSize size() const { return {images_at_once() * in_pixels(), taps() * outputs, channels, groups}; }
};

Result Find(const Problem& p, Transposed* out) {
  Node n = p.node();
  Value x = n.input(0), w = n.input(1);
  if (x.dtype() != MGE_DTYPE_F32 || w.dtype() != MGE_DTYPE_F32) return {MGE_UNIMPLEMENTED, "only float32"};
  ConvSizes sizes;
  if (Result r = ReadConvTranspose(n, &sizes, out->axes); !r.ok()) return r;
  out->rank = x.rank();
  out->groups = sizes.groups;
  out->images = sizes.images;
  out->channels = sizes.channels / sizes.groups;
  out->outputs = sizes.outputs / sizes.groups;
  if (!FindEpilogue(p, ChannelAxis::kSecond, out->epilogue)) return {MGE_UNIMPLEMENTED, "unsupported epilogue"};
  out->x = p.operand(0, 0);
  out->weights = p.operand(0, 1);
  out->bias = n.has_input(2) ? p.operand(0, 2) : p.operand(out->epilogue.bias);
  out->add = p.operand(out->epilogue.add);
  for (int other : {out->x, out->bias, out->add}) {
    if (other == out->weights) return {MGE_UNIMPLEMENTED, "the filter is also another operand"};
  }
  if (x.is_constant() || (out->add >= 0 && p.input(out->add).is_constant())) {
    return {MGE_UNIMPLEMENTED, "constant image or addend, which is always plain"};
  }
  out->weights_constant = w.is_constant();
  return {};
}

// Returns the taps that reach each output position of an axis.
std::vector<Col2ImTaps> TapsOf(const WindowAxis& a, int64_t step, int64_t back) {
  std::unordered_map<int64_t, int64_t> first;  // position modulo stride -> smallest tap
  for (int64_t k = 0; k < std::min(step, a.kernel); ++k) first.emplace(k * a.dilation % a.stride, k);
  std::vector<Col2ImTaps> taps(static_cast<size_t>(a.out));
  for (int64_t o = 0; o < a.out; ++o) {
    int64_t at = o + a.pad_begin, rest = ((at % a.stride) + a.stride) % a.stride;
    auto found = first.find(rest);
    if (found == first.end()) continue;
    int64_t k = found->second, i = (at - k * a.dilation) / a.stride;
    int64_t skipped = i < a.in ? 0 : (i - a.in) / back + 1;  // taps that would read beyond the end
    int64_t end = std::min(i < 0 ? 0 : i / back + 1, (a.kernel - 1 - k) / step + 1);
    if (end > skipped) taps[static_cast<size_t>(o)] = {k + skipped * step, i - skipped * back, end - skipped};
  }
  return taps;
}

struct Args {
  const GemmTable* gemm;
  const Col2ImTable* col2im;
  const DepthwiseTable* images;
  GemmTask product;  // for one group
  Col2ImTask sums;
  GemmSplit split;  // the batch is the groups
  Chunks rows;      // output rows of images_at_once images
  Chunks repeats;   // groups of the pixels of images_at_once images
  int64_t taps, multiplier;
  int64_t channel_passes;  // channels of a group that are convolved alone, one after another
  int64_t passes, pass_x, pass_y, group_floats;
  bool packs, depthwise, repeats_image, has_bias, has_add;
  uint64_t threads;  // ConvThreads()
  uint64_t columns_offset, scratch_offset;
  Slot x, weights, bias, add, y, workspace;
};

// Packs W (group, channel, output, tap) into a matrix (channel, (tap, output)) per group, or into (channel, tap, (group, output)) if
// depthwise.
void Pack(const Args& s, const float* source, float* scratch, float* out) {
  const Col2ImTask& t = s.sums;
  if (s.depthwise) {
    for (int64_t c = 0; c < s.channel_passes; ++c) {
      for (int64_t k = 0; k < s.taps; ++k) {
        for (int64_t i = 0; i < t.channels; ++i) {
          const int64_t group = i / s.multiplier, output = i % s.multiplier;
          *out++ = source[((group * s.channel_passes + c) * s.multiplier + output) * s.taps + k];
        }
      }
    }
    return;
  }
  int64_t channels = s.product.k, outputs = t.channels, taps = s.product.n / outputs;
  for (int64_t g = 0; g < t.groups; ++g) {
    const float* from = source + g * channels * outputs * taps;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < taps; ++k) {
        for (int64_t o = 0; o < outputs; ++o) scratch[(c * taps + k) * outputs + o] = from[(c * outputs + o) * taps + k];
      }
    }
    s.gemm->pack(scratch, MGE_DTYPE_F32, s.product.n, 1, channels, s.product.n, 1.0f, out + g * s.group_floats, 0,
                 s.split.panels);
  }
}

mge_code Launch(const Args& s, const mge_run* run) {
  char* workspace = At<char>(run, s.workspace);
  const float* packed = At<float>(run, s.weights);
  if (s.packs) {
    auto* to = reinterpret_cast<float*>(workspace);
    Pack(s, packed, reinterpret_cast<float*>(workspace + s.scratch_offset), to);
    packed = to;
  }
  auto* columns = reinterpret_cast<float*>(workspace + s.columns_offset);
  for (int64_t pass = 0; pass < s.passes; ++pass) {
    const float* x = At<float>(run, s.x) + pass * s.pass_x;
    Col2ImTask sums = s.sums;
    sums.columns = s.depthwise && !s.repeats_image ? x : columns;
    if (!s.depthwise) {
      ForConvChunks(run, s.threads, s.split, [&](int64_t group, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
        GemmTask t = s.product;
        t.a.data = x + group * t.k;
        t.b = packed + group * s.group_floats;
        t.c = columns + group * t.n;
        s.gemm->run(t, m0, m1, p0, p1);
      });
    }
    sums.y = At<float>(run, s.y) + pass * s.pass_y;
    for (int64_t c = 0; c < s.channel_passes; ++c) {
      if (s.repeats_image) {
        ForConvChunks(run, s.threads, s.repeats, [&](uint64_t begin, uint64_t end) {
          s.images->repeat(x + c + static_cast<int64_t>(begin) * s.channel_passes, static_cast<int64_t>(end - begin),
                           s.channel_passes, s.multiplier, columns + static_cast<int64_t>(begin) * s.multiplier);
        });
      }
      if (s.depthwise) sums.weights = packed + c * s.taps * sums.channels;
      sums.bias = s.has_bias && c == 0 ? At<float>(run, s.bias) : nullptr;
      sums.add = c > 0 ? sums.y : s.has_add ? At<float>(run, s.add) + pass * s.pass_y : nullptr;
      sums.activation = c + 1 == s.channel_passes ? s.sums.activation : Activation::kNone;
      ForConvChunks(run, s.threads, s.rows, [&](uint64_t begin, uint64_t end) {
        s.col2im->run(sums, static_cast<int64_t>(begin), static_cast<int64_t>(end));
      });
    }
  }
  return MGE_OK;
}

double ProductUs(const Transposed& t, Isa isa) { return t.depthwise() ? 0 : GemmSerialUs(t.size(), isa); }

double RepeatUs(const Transposed& t) {
  return t.repeats() ? static_cast<double>(t.passes()) * cpu::RepeatUs(t.images_at_once() * t.image_columns()) : 0;
}

double SumsUs(const Transposed& t, Isa isa) {
  double lanes = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  int64_t together = t.depthwise() ? t.groups * t.outputs : t.outputs;  // channels per loop
  double vectors =
      together <= 2 && !t.depthwise() ? static_cast<double>(together) : std::ceil(static_cast<double>(together) / lanes);
  double images = static_cast<double>(t.images_at_once() * (t.depthwise() ? 1 : t.groups));
  double loads = images * static_cast<double>(t.in_pixels() * t.taps()) * vectors;
  double stores = images * static_cast<double>(t.out_pixels()) * vectors;
  double columns = 4.0 * static_cast<double>(t.images_at_once() * t.image_columns());
  double store_ns = together <= 2 && !t.depthwise() ? 12 : 3;
  double outputs = static_cast<double>(t.images_at_once() * t.out_pixels() * t.groups * t.outputs);
  return static_cast<double>(t.passes()) * (loads * 0.8e-3 + stores * store_ns * 1e-3 + StreamUs(columns)) +
         ActivationUs(t.epilogue.activation, outputs, isa);
}

class TransposedKernel : public Kernel {
 public:
  TransposedKernel(const Transposed& conv, Isa isa, bool will_run) : conv_(conv) {
    const GemmTable& gemm = Gemm(isa);
    const GemmSize size = conv.size();
    Args& a = args_;
    a.gemm = &gemm;
    a.col2im = &Col2Im(isa);
    a.images = &Depthwise(isa);
    a.split = SplitGemm(size, gemm.columns, ProductUs(conv, isa));
    a.group_floats = PackedFloats(size.k, size.n, gemm.columns);
    a.product.a = {nullptr, MGE_DTYPE_F32, conv.groups * conv.channels, 1, 1.0f, nullptr};
    a.product.m = size.m;
    a.product.n = size.n;
    a.product.k = size.k;
    a.product.ldc = conv.groups * size.n;
    a.threads = ConvThreads();
    a.depthwise = conv.depthwise();
    a.sums.groups = a.depthwise ? 1 : conv.groups;
    a.sums.channels = a.depthwise ? conv.groups * conv.outputs : conv.outputs;
    a.taps = conv.taps();
    a.multiplier = conv.outputs;
    a.channel_passes = conv.passes();
    a.repeats_image = conv.repeats();
    a.sums.activation = conv.epilogue.activation;
    a.sums.lo = conv.epilogue.lo;
    a.sums.hi = conv.epilogue.hi;
    for (size_t d = 0; d < 3; ++d) {
      const WindowAxis& axis = conv.axes[d];
      int64_t common = std::gcd(axis.stride, axis.dilation), step = axis.stride / common, back = axis.dilation / common;
      if (will_run) taps_[d] = TapsOf(axis, step, back);
      a.sums.axes[d] = {axis.in, axis.kernel, axis.out, step, back, taps_[d].data()};
    }
    auto rows = static_cast<uint64_t>(conv.images_at_once() * conv.axes[0].out * conv.axes[1].out);
    const auto channel_passes = static_cast<uint64_t>(a.channel_passes);
    a.rows = SplitWork(rows, SumsUs(conv, isa) / static_cast<double>(rows * channel_passes));
    const auto elements = static_cast<uint64_t>(conv.images_at_once() * conv.in_pixels() * conv.groups);
    a.repeats = SplitWork(elements, RepeatUs(conv) / static_cast<double>(elements * channel_passes));
    a.passes = conv.images / conv.images_at_once();
    a.pass_x = conv.images_at_once() * conv.in_pixels() * conv.groups * conv.channels;
    a.pass_y = conv.images_at_once() * conv.out_pixels() * conv.groups * conv.outputs;
    a.packs = !conv.weights_constant;
    a.has_bias = conv.bias >= 0;
    a.has_add = conv.add >= 0;
    packed_bytes_ = Bytes(conv.groups * (a.depthwise ? size.k * size.n : a.group_floats));
    if (a.packs) {
      a.scratch_offset = packed_bytes_;
      a.columns_offset = a.scratch_offset + Bytes(size.k * size.n);
    }
    workspace_ = a.columns_offset + Bytes(conv.images_at_once() * conv.image_columns());
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == conv_.weights && !args_.packs ? packed_bytes_ : 0; }
  std::string prepack_form(int) const override {
    std::string form =
        args_.depthwise ? "cpu.conv_transpose.depthwise" : "cpu.conv_transpose." + std::to_string(args_.gemm->columns);
    for (int64_t n : {conv_.groups, conv_.channels, conv_.outputs, conv_.taps()}) form += "." + std::to_string(n);
    return form;
  }
  Result Prepack(int, const void* source, void* destination) override {
    std::vector<float> scratch(static_cast<size_t>(args_.product.k * args_.product.n));
    Pack(args_, static_cast<const float*>(source), scratch.data(), static_cast<float*>(destination));
    return {};
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->x = b.input(conv_.x);
    a->weights = b.input(conv_.weights);
    if (a->has_bias) a->bias = b.input(conv_.bias);
    if (a->has_add) a->add = b.input(conv_.add);
    a->y = b.output(0);
    a->workspace = b.workspace();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  static uint64_t Bytes(int64_t floats) { return (static_cast<uint64_t>(floats) * sizeof(float) + 63) / 64 * 64; }

  const Transposed conv_;
  Args args_ = {};
  std::vector<Col2ImTaps> taps_[3];
  uint64_t packed_bytes_ = 0, workspace_ = 0;
};

enum TransposedKind : uint32_t { kTogether = 0, kByChannel = 1 };

struct ConvTransposeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Transposed conv;
    if (Result r = Find(p, &conv); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    auto offer = [&](TransposedKind kind, std::string_view id) {
      conv.by_channel = kind == kByChannel;
      Candidate c = {.id = std::string(id),
                     .attributes = kExact,
                     .workspace = TransposedKernel(conv, isa, false).workspace_bytes(),
                     .variant = kind};
      c.cost_us = ConvRunUs(p, static_cast<double>(conv.images / conv.images_at_once()) *
                                   (ProductUs(conv, isa) + RepeatUs(conv) + SumsUs(conv, isa)));
      c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
      c.inputs[static_cast<size_t>(conv.x)] = ChannelsLast(conv.rank);
      if (conv.add >= 0) c.inputs[static_cast<size_t>(conv.add)] = ChannelsLast(conv.rank);
      c.outputs = {ChannelsLast(conv.rank)};
      if (conv.add >= 0 && conv.add != conv.x) c.in_place.push_back({0, static_cast<uint32_t>(conv.add)});
      Add(offers, isa, std::move(c));
    };
    offer(kTogether, "cpu.conv_transpose");
    if (conv.groups > 1 && conv.channels > 1 && conv.channels <= kMaxGroupPasses)
      offer(kByChannel, "cpu.conv_transpose.grouped");
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Transposed conv;
    if (!Find(p, &conv).ok()) return nullptr;
    conv.by_channel = KindOf(c) == kByChannel;
    return std::make_unique<TransposedKernel>(conv, IsaOf(c), true);
  }
};

constexpr KernelRow kRows[] = {Row<ConvTransposeRow>("ConvTranspose")};

}  // namespace

MGE_KERNELS(conv_transpose) = kRows;

}  // namespace mge::cpu
