// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM of float32, and DynamicQuantizeLSTM, an LSTM whose weights, inputs and states are quantized to 8 bits.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "support/kernel.h"
#include "support/recurrent_chain.h"
#include "support/recurrent_pack.h"

namespace mge::cpu {
namespace {

using Kind = Recurrence::Kind;

// Quantizes X up to the end of the longest sequence: to bytes if int8, otherwise to the numbers that the bytes represent.
void QuantizeInput(const RecurrentArgs& a, const mge_run* run, float* out) {
  const auto* x = At<const float>(run, a.x);
  const auto* lengths = a.r.lengths >= 0 ? At<const int32_t>(run, a.lengths) : nullptr;
  const int64_t longest = lengths && a.r.batch ? *std::max_element(lengths, lengths + a.r.batch) : a.r.steps;
  const int64_t n = longest * a.r.batch * a.r.input;
  Quantizer quantizer = {*a.cells};
  quantizer.Cover(x, n);
  if (!a.int8) return quantizer.Requantize(x, n, out);
  *reinterpret_cast<RowHead*>(out) = {quantizer.scale(), quantizer.zero(), {}};
  const Int8Rows rows = {reinterpret_cast<uint8_t*>(out) + sizeof(RowHead), a.r.input, quantizer.scale(), quantizer.zero()};
  for (int64_t i = 0; i < longest * a.r.batch; ++i) {
    *rows.sum(i) = a.bytes->quantize(x + i * a.r.input, a.r.input, rows.scale, rows.zero, rows.row(i));
  }
}

mge_code CheckLengths(const RecurrentArgs& a, const mge_run* run) {
  if (a.r.lengths < 0) return MGE_OK;
  const auto* lengths = At<const int32_t>(run, a.lengths);
  for (int64_t i = 0; i < a.r.batch; ++i) {
    if (lengths[i] >= 0 && lengths[i] <= a.r.steps) continue;
    char text[96];
    int n = std::snprintf(text, sizeof(text), "sequence_lens[%lld] = %d is outside of 0..%lld", static_cast<long long>(i),
                          lengths[i], static_cast<long long>(a.r.steps));
    return run->host->fail(run->host->self, run->error, MGE_OUT_OF_RANGE, text, static_cast<uint64_t>(n));
  }
  return MGE_OK;
}

mge_code Launch(const RecurrentArgs& a, const mge_run* run) {
  if (mge_code code = CheckLengths(a, run); code != MGE_OK) return code;
  auto* work = At<float>(run, a.workspace);
  if (a.sums_bias) SumBiases(a, a.r.b >= 0 ? At<const float>(run, a.b) : nullptr, work + a.bias_at);
  auto pack = [&](int which, int64_t k, const Slot& weights, const Slot& scale, const Slot& zero, float* packed) {
    if (!a.r.quantized) return PackMatrices(a, k, At<const float>(run, weights), work + a.rows_at, packed);
    PackQuantized(a, k,
                  {At<const void>(run, weights), a.signed_weights[which], At<const float>(run, scale),
                   At<const void>(run, zero), a.scale_columns[which], a.zero_columns[which]},
                  work + a.rows_at, packed);
  };
  if (a.packs_w) pack(0, a.r.input, a.w, a.w_scale, a.w_zero, work + a.w_at);
  if (a.packs_u) pack(1, a.r.hidden, a.u, a.u_scale, a.u_zero, work + a.u_at);
  if (a.r.quantized) QuantizeInput(a, run, work + a.x_at);
  if (a.at_once) {
    ParallelFor(run, static_cast<uint64_t>(a.chains()),
                [&](uint64_t i) { Chain<OnOneThread>(a, run, static_cast<int64_t>(i), {}).Run(); });
  } else {
    for (int64_t i = 0; i < a.chains(); ++i) Chain<OnAllThreads>(a, run, i, {run}).Run();
  }
  return MGE_OK;
}

class RecurrentKernel : public Kernel {
 public:
  RecurrentKernel(const Problem& p, const Recurrence& r, Isa isa) {
    RecurrentArgs& a = args_;
    a.r = r;
    a.isa = isa;
    a.gemm = &Gemm(isa);
    a.cells = &RecurrentCells(isa);
    a.bytes = &Int8(isa);
    a.int8 = r.quantized && AllowsVnni(isa) && a.gemm->columns % kInt8Columns == 0;
    a.order = GateOrder(r, a.gemm->columns);
    auto packed = [&](int operand) {
      const int others[] = {r.x, r.w, r.r, r.b, r.h, r.c, r.p};
      return operand >= 0 && p.input(operand).is_constant() &&
             std::count(std::begin(others), std::end(others), operand) == 1;
    };
    a.packs_w = !packed(r.w);
    a.packs_u = !packed(r.r);
    if (r.quantized) FindScales(p);
    a.sums_bias = !packed(r.b);
    Cut();
    Place();
  }

  uint32_t args_bytes() const override { return sizeof(RecurrentArgs); }
  uint64_t workspace_bytes() const override { return static_cast<uint64_t>(floats_) * sizeof(float); }
  uint64_t prepack_bytes(int input) const override {
    const RecurrentArgs& a = args_;
    int64_t bytes = 0;
    if (!a.packs_w && input == a.r.w) bytes = a.packed_bytes(a.r.input);
    if (!a.packs_u && input == a.r.r) bytes = a.packed_bytes(a.r.hidden);
    if (!a.sums_bias && input == a.r.b) bytes = a.bias_floats() * static_cast<int64_t>(sizeof(float));
    return static_cast<uint64_t>(a.r.directions * bytes);
  }
  std::string prepack_form(int input) const override {
    const RecurrentArgs& a = args_;
    const bool bytes = a.r.quantized && input != a.r.b;
    std::string form = input == a.r.b ? "recurrent.bias"
                       : !bytes       ? "recurrent.weights"
                       : a.int8       ? "recurrent.int8"
                                      : "recurrent.scaled";
    for (int64_t fact : {static_cast<int64_t>(a.r.kind), a.r.directions, a.r.hidden, input == a.r.w ? a.r.input : a.r.hidden,
                         a.order.columns, static_cast<int64_t>(a.separate_bias())}) {
      form += '.' + std::to_string(fact);
    }
    if (!bytes) return form;
    // Scales and zero points are part of the packed form's name. With one per column, the name would be too long.
    constexpr size_t kMaxNamed = 16;
    const int which = input == a.r.w ? 0 : 1;
    if (std::max(scales_[which].size(), zeros_[which].size()) > kMaxNamed) return {};
    form += a.signed_weights[which] ? ".i8" : ".u8";
    for (float scale : scales_[which]) form += ".s" + std::to_string(std::bit_cast<uint32_t>(scale));
    for (uint8_t zero : zeros_[which]) form += ".z" + std::to_string(zero);
    return form;
  }
  Result Prepack(int input, const void* source, void* destination) override {
    const RecurrentArgs& a = args_;
    auto* from = static_cast<const float*>(source);
    auto* to = static_cast<float*>(destination);
    if (input == a.r.b) {
      SumBiases(a, from, to);
      return {};
    }
    const int which = input == a.r.w ? 0 : 1;
    const int64_t k = which == 0 ? a.r.input : a.r.hidden;
    std::vector<float> rows(static_cast<size_t>(a.order.width() * k));
    if (!a.r.quantized) {
      PackMatrices(a, k, from, rows.data(), to);
    } else {
      PackQuantized(a, k,
                    {source, a.signed_weights[which], scales_[which].data(), zeros_[which].data(), a.scale_columns[which],
                     a.zero_columns[which]},
                    rows.data(), to);
    }
    return {};
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* a = new (args) RecurrentArgs(args_);
    auto input = [&](int operand, Slot* slot) {
      if (operand >= 0) *slot = binding.input(operand);
    };
    auto output = [&](int operand, Slot* slot) {
      if (operand >= 0) *slot = binding.output(operand);
    };
    input(a->r.x, &a->x);
    input(a->r.w, &a->w);
    input(a->r.r, &a->u);
    input(a->r.b, &a->b);
    input(a->r.lengths, &a->lengths);
    input(a->r.h, &a->h);
    input(a->r.c, &a->c);
    input(a->r.p, &a->p);
    output(a->r.y, &a->y);
    output(a->r.y_h, &a->y_h);
    output(a->r.y_c, &a->y_c);
    input(operands_[0], &a->w_scale);
    input(operands_[1], &a->w_zero);
    input(operands_[2], &a->u_scale);
    input(operands_[3], &a->u_zero);
    a->workspace = binding.workspace();
    *step = StepFn::Of<Launch>();
    return {};
  }

  // Return the estimated time on one thread, and the number of threads that the work can use.
  double serial_us() const { return serial_us_; }
  double ways() const { return ways_; }

 private:
  // Finds scales and zero points. Weights can be packed in advance only if these are constant too.
  void FindScales(const Problem& p) {
    RecurrentArgs& a = args_;
    const Node n = p.node();
    for (int which : {0, 1}) {
      const Value scale = n.input(8 + 2 * which), zero = n.input(9 + 2 * which);
      operands_[2 * which] = p.operand(0, 8 + 2 * which);
      operands_[2 * which + 1] = p.operand(0, 9 + 2 * which);
      a.signed_weights[which] = zero.dtype() == MGE_DTYPE_I8;
      a.scale_columns[which] = scale.rank() == 2;
      a.zero_columns[which] = zero.rank() == 2;
      if (!scale.is_constant() || !zero.is_constant()) {
        (which == 0 ? a.packs_w : a.packs_u) = true;
        continue;
      }
      scales_[which].assign(scale.data<float>().begin(), scale.data<float>().end());
      zeros_[which].assign(zero.data<uint8_t>().begin(), zero.data<uint8_t>().end());
    }
  }

  // Chooses the groups: large enough that arithmetic takes longer than reading the weights. Chains run in parallel if a
  // core's second-level cache holds the recurrent weights of one.
  void Cut() {
    RecurrentArgs& a = args_;
    const Recurrence& r = a.r;
    const Isa isa = a.isa;
    constexpr int64_t kGroup = 8, kCacheBytes = 2 << 20, kSumBytes = 1 << 20, kMinSteps = 16;
    constexpr double kUnitChunkUs = 4;
    const int64_t width = a.order.width(), weights = a.packed_bytes(r.hidden);
    const int64_t groups = r.quantized ? 1 : std::max<int64_t>(1, r.batch / kGroup);  // quantized states share one range
    a.group = (r.batch + groups - 1) / groups;
    a.at_once = groups > 1 || (r.directions > 1 && weights <= kCacheBytes);
    const int64_t row = std::max<int64_t>(1, a.group * width * static_cast<int64_t>(sizeof(float)));
    a.block_steps = std::clamp<int64_t>(kSumBytes / row, std::min(kMinSteps, r.steps), r.steps);
    const double cells_ns = (isa == Isa::kAvx512 ? 0.6 : isa == Isa::kAvx2 ? 1.2 : 3) * static_cast<double>(r.gates);
    const double bytes = a.int8 ? 0.3 : 1;  // relative to a product of floats
    const double step_us = bytes * GemmSerialUs({a.group, width, r.hidden, 1}, isa) + 0.05 +
                           1e-3 * cells_ns * static_cast<double>(a.group * r.hidden);
    a.unit_chunks = step_us < 2 * kUnitChunkUs ? 1
                                               : std::clamp<int64_t>(static_cast<int64_t>(step_us / kUnitChunkUs), 1,
                                                                     std::min<int64_t>(a.order.blocks, 16));
    const double chains = static_cast<double>(a.chains());
    serial_us_ = chains * (bytes * GemmSerialUs({a.group * r.steps, width, r.input, 1}, isa) +
                           static_cast<double>(r.steps) * step_us);
    if (serial_us_ < kSplitUs) a.at_once = false;
    ways_ = a.at_once ? chains : static_cast<double>(a.unit_chunks);
  }

  // Divides the workspace, in floats: what all directions share first (rows of the input as bytes, sums of biases, weights that
  // are packed in each run), then one area for each chain, a part of the batch that one thread computes through all steps.
  // Every area begins at a line of the cache, so that threads do not write to the same line.
  void Place() {
    RecurrentArgs& a = args_;
    auto take = [&](int64_t floats) { return std::exchange(floats_, floats_ + (floats + 15) / 16 * 16); };
    const int64_t width = a.order.width(), d = a.r.directions;
    a.x_at = take(!a.r.quantized ? 0 : a.r.steps * a.r.batch * (a.int8 ? Int8Bytes(a.r.input) / 4 + 1 : a.r.input) + 16);
    a.bias_at = take(a.sums_bias ? d * a.bias_floats() : 0);
    a.w_at = take(a.packs_w ? d * a.packed_bytes(a.r.input) / 4 : 0);
    a.u_at = take(a.packs_u ? d * a.packed_bytes(a.r.hidden) / 4 : 0);
    a.rows_at = take(width * std::max(a.packs_w ? a.r.input : 0, a.packs_u ? a.r.hidden : 0));
    a.chain_floats = a.group * ((a.block_steps + 1) * width + 5 * a.state());
    a.chains_at = take(a.chains() * a.chain_floats);
  }

  RecurrentArgs args_ = {};
  int operands_[4] = {-1, -1, -1, -1};  // scale and zero point of W and R
  std::vector<float> scales_[2];
  std::vector<uint8_t> zeros_[2];
  int64_t floats_ = 0;
  double serial_us_ = 0, ways_ = 1;
};

struct RecurrentRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    if (p.node().input(0).dtype() != MGE_DTYPE_F32) return offers.Refuse("only float32");
    Recurrence r;
    if (Result why = FindRecurrence(p, &r); !why.ok()) return offers.Refuse(why.text());
    Isa isa = AllowedIsa();
    RecurrentKernel kernel(p, r, isa);
    double us = kernel.serial_us();
    if (us >= kSplitUs) us /= std::min(static_cast<double>(p.threads()), kernel.ways());
    Add(offers, isa, {.id = "cpu.recurrent", .attributes = kExact, .workspace = kernel.workspace_bytes(), .cost_us = us});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Recurrence r;
    if (!FindRecurrence(p, &r).ok()) return nullptr;
    return std::make_unique<RecurrentKernel>(p, r, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<RecurrentRow>("RNN"), Row<RecurrentRow>("GRU"), Row<RecurrentRow>("LSTM"),
                               Row<RecurrentRow>("DynamicQuantizeLSTM", "com.microsoft")};

}  // namespace

MGE_KERNELS(recurrent) = kRows;

}  // namespace mge::cpu
