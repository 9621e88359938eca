// SPDX-License-Identifier: Apache-2.0
#include "support/int8_depthwise.h"

#include <algorithm>
#include <string>

#include "support/conv_threads.h"
#include "support/kernel.h"
#include "vec/int8_depthwise.h"

namespace mge::cpu {
namespace {

double DepthwiseUs(const Convolution& c, Isa isa, bool vnni) {
  const double channels = static_cast<double>((c.channels + 63) / 64 * 64),
               taps = static_cast<double>((c.taps() + 3) / 4 * 4);
  const double ns = vnni ? 0.008 * taps + 0.03
                         : (isa == Isa::kPortable ? 0.4
                            : isa == Isa::kAvx2   ? 0.12
                                                  : 0.06) *
                                   taps +
                               0.1;
  return 0.1 + 1e-3 * ns * static_cast<double>(c.rows()) * channels +
         WindowUs(static_cast<double>(c.images * c.in_pixels() * c.channels + c.rows() * c.channels));
}

// Returns whether the weights' zero points are known to be such that the centred weights are signed bytes.
bool HasCentredWeights(const Problem& p, const Int8Parameters& q) {
  if (!q.b_zero.present()) return q.b_signed;
  Value zero = p.input(q.b_zero.operand);
  if (!zero.is_constant()) return false;
  if (q.b_signed) return std::ranges::all_of(zero.data<int8_t>(), [](int8_t z) { return z == 0; });
  return std::ranges::all_of(zero.data<uint8_t>(), [](uint8_t z) { return z == 128; });
}

struct DepthwiseArgs {
  void (*run)(const Int8DepthwiseTask&, int64_t, int64_t);
  Int8DepthwiseTask task;
  Chunks chunks;     // chunks of rows of the output
  uint64_t threads;  // ConvThreads()
  Int8Parameters parameters;
  Int8Columns columns;
  bool vnni, packs;
  int64_t sums_at;  // of the weights' sums, after the packed weights
  uint64_t packed_at, columns_at, outside_at;
  Slot x, weights, y, workspace;
};

// Packs centred weights, followed by their sums. `zero` returns the zero point of a channel.
template <typename F>
void PackDepthwise(const DepthwiseArgs& s, const void* source, F&& zero, void* out) {
  const int64_t n = s.task.channels, taps = s.task.windows.kh * s.task.windows.kw, quads = (taps + 3) / 4;
  auto* sums = reinterpret_cast<int32_t*>(static_cast<char*>(out) + s.sums_at);
  std::fill_n(static_cast<char*>(out), s.sums_at + s.columns.padded * 4, '\0');
  for (int64_t c = 0; c < n; ++c) {
    sums[c] = 0;
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t at = c * taps + t;
      const int32_t raw =
          s.parameters.b_signed ? static_cast<const int8_t*>(source)[at] : static_cast<const uint8_t*>(source)[at];
      const int32_t w = raw - zero(c);
      sums[c] += w;
      if (!s.vnni) {
        static_cast<float*>(out)[t * n + c] = static_cast<float>(w);
        continue;
      }
      const int64_t block = c / kInt8DepthwiseBlock * kInt8DepthwiseBlock * quads * 4, lane = c % kInt8DepthwiseBlock;
      static_cast<int8_t*>(out)[block + t / 4 * 256 + lane % 16 / 4 * 64 + lane / 16 * 16 + lane % 4 * 4 + t % 4] =
          static_cast<int8_t>(w);
    }
  }
}

mge_code LaunchDepthwise(const DepthwiseArgs& s, const mge_run* run) {
  char* workspace = At<char>(run, s.workspace);
  Int8DepthwiseTask t = s.task;
  const char* packed = At<char>(run, s.weights);
  if (s.packs) {
    const Int8Parameter& zero = s.parameters.b_zero;
    PackDepthwise(
        s, packed, [&](int64_t c) { return zero.present() ? zero.Integer(run, c) : 0; }, workspace + s.packed_at);
    packed = workspace + s.packed_at;
  }
  t.weights = packed;
  // The packed weights are centred. VNNI code adds 128 to a signed image.
  Int8Parameters q = s.parameters;
  q.b_zero = {};
  WriteInt8Columns(q, s.columns, run, 0, reinterpret_cast<const int32_t*>(packed + s.sums_at),
                   s.vnni && t.x_signed ? 128 : 0, 0, workspace + s.columns_at, t.result);
  auto* outside = reinterpret_cast<uint8_t*>(workspace + s.outside_at);
  const int32_t zero = q.a_zero.present() ? q.a_zero.Integer(run, 0) : 0;
  std::fill_n(outside, t.channels + 64, static_cast<uint8_t>(zero));
  t.outside = outside;
  t.x = At<char>(run, s.x);
  t.result.c = At<char>(run, s.y);
  ForConvChunks(run, s.threads, s.chunks,
                [&](uint64_t begin, uint64_t end) { s.run(t, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(const Problem& p, const Int8Product& product, Isa isa) {
    const Convolution& c = product.convolution;
    DepthwiseArgs& a = args_;
    a.parameters = product.parameters;
    x_ = c.x;
    weights_ = c.weights;
    const bool centred = HasCentredWeights(p, a.parameters);
    a.vnni = AllowsVnni(isa) && Int8Depthwise(isa).run_vnni && centred;
    a.run = a.vnni ? Int8Depthwise(isa).run_vnni : Int8Depthwise(isa).run;
    a.task.x_signed = a.parameters.a_signed;
    a.task.windows = c.windows;
    a.task.channels = c.channels;
    a.threads = ConvThreads();
    us_ = DepthwiseUs(c, isa, a.vnni);
    const auto rows = static_cast<uint64_t>(c.images * c.windows.oh);
    a.chunks = SplitWork(rows, us_ / static_cast<double>(rows));
    a.columns = {1, c.outputs, (c.outputs + 15) / 16 * 16, false};
    const int64_t quads = (c.taps() + 3) / 4;
    a.sums_at = a.vnni ? (c.channels + 63) / 64 * 64 * quads * 4 : c.channels * c.taps() * 4;
    zero_ = centred && a.parameters.b_zero.present() && !a.parameters.b_signed ? 128 : 0;
    a.packs = !c.weights_constant || c.weights == c.x || a.parameters.Has(c.weights) || !centred;
    uint64_t at = 0;
    auto take = [&](uint64_t bytes) { return std::exchange(at, at + Aligned64(bytes)); };
    packed_bytes_ = static_cast<uint64_t>(a.sums_at + a.columns.padded * 4);
    if (a.packs) a.packed_at = take(packed_bytes_);
    a.columns_at = take(a.columns.bytes());
    a.outside_at = take(static_cast<uint64_t>(c.channels + 64));
    workspace_ = at;
  }

  double serial_us() const { return us_; }
  uint32_t args_bytes() const override { return sizeof(DepthwiseArgs); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return input == weights_ && !args_.packs ? packed_bytes_ : 0; }
  Result Prepack(int, const void* source, void* destination) override {
    PackDepthwise(
        args_, source, [&](int64_t) { return zero_; }, destination);
    return {};
  }
  std::string prepack_form(int) const override {
    const DepthwiseArgs& a = args_;
    return std::string(a.vnni ? "int8 depthwise blocks " : "int8 depthwise ") + std::to_string(a.task.channels) + "," +
           std::to_string(a.task.windows.kh * a.task.windows.kw) + "," + std::to_string(zero_) +
           (a.parameters.b_signed ? " signed" : "");
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    DepthwiseArgs* a = new (args) DepthwiseArgs(args_);
    a->x = b.input(x_);
    a->weights = b.input(weights_);
    a->y = b.output(0);
    a->workspace = b.workspace();
    a->parameters.Bind(b);
    *step = StepFn::Of<LaunchDepthwise>();
    return {};
  }

 private:
  DepthwiseArgs args_ = {};
  int x_ = -1, weights_ = -1;
  int32_t zero_ = 0;
  uint64_t packed_bytes_ = 0, workspace_ = 0;
  double us_ = 0;
};

}  // namespace

bool IsInt8Depthwise(const Int8Product& product) {
  const Convolution& c = product.convolution;
  return c.depthwise() && c.multiplier() == 1 && !c.volume() && c.taps() <= kInt8DepthwiseTaps && !product.a_constant;
}

KernelPtr MakeInt8Depthwise(const Problem& p, const Int8Product& product, Isa isa, double* serial_us) {
  auto kernel = std::make_unique<DepthwiseKernel>(p, product, isa);
  if (serial_us) *serial_us = kernel->serial_us();
  return kernel;
}

}  // namespace mge::cpu
