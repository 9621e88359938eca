// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime: float32 rows times weights of 2, 4 or 8 bits, which stay packed. Few rows are multiplied with
// the packed weights. For many rows, each chunk unpacks one panel of columns after the other.
#include "vec/packed_weights.h"

#include <algorithm>
#include <bit>
#include <string>

#include "support/gemm.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

enum Operand : int { kA, kB, kScales, kZeros, kGroups, kBias };

constexpr int64_t kManyRows = 8;
constexpr uint64_t kMostPanelChunks = 16;  // each has a panel in the workspace

struct Args {
  const PackedTable* table;
  const GemmTable* gemm;
  PackedTask task;
  Chunks rows, columns;  // for many rows, `columns` are panels
  int64_t n, registers;
  uint64_t sums_offset;
  Slot a, b, scales, zeros, bias, c, workspace;
  bool has_zeros, has_bias;
};

PackedTask TaskOf(const Args& s, const mge_run* run) {
  PackedTask t = s.task;
  t.weights.data = At<uint8_t>(run, s.b);
  t.weights.scales = At<float>(run, s.scales);
  if (s.has_zeros) t.weights.zeros = At<float>(run, s.zeros);
  if (s.has_bias) t.bias = At<float>(run, s.bias);
  t.c = At<float>(run, s.c);
  return t;
}

mge_code LaunchFewRows(const Args& s, const mge_run* run) {
  PackedTask t = TaskOf(s, run);
  const float* a = At<float>(run, s.a);
  auto* rows = At<float>(run, s.workspace);
  auto* sums = reinterpret_cast<float*>(At<char>(run, s.workspace) + s.sums_offset);
  const int lanes = s.table->lanes;
  const int64_t floats = ArrangedFloats(s.registers, t.weights.bits, lanes);
  ForChunks(run, s.rows, [&](uint64_t begin, uint64_t end) {
    for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r) {
      s.table->arrange(a + r * t.k, t.k, t.weights.bits, s.registers, rows + r * floats, sums + r * s.registers * lanes);
    }
  });
  t.rows = rows;
  t.sums = sums;
  ForChunks(run, s.columns,
            [&](uint64_t begin, uint64_t end) { s.table->run(t, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

mge_code LaunchManyRows(const Args& s, const mge_run* run) {
  const PackedTask t = TaskOf(s, run);
  const int64_t columns = s.gemm->columns;
  ForChunks(run, s.columns, [&](uint64_t begin, uint64_t end) {
    float* panel = At<float>(run, s.workspace) + static_cast<int64_t>(begin / s.columns.per_chunk) * t.k * columns;
    for (auto p = static_cast<int64_t>(begin); p < static_cast<int64_t>(end); ++p) {
      const int64_t n0 = p * columns;
      s.table->unpack(t.weights, t.k, n0, s.n, columns, panel);
      GemmTask product = {};
      product.a = {At<float>(run, s.a), MGE_DTYPE_F32, t.k, 1, 1.0f, nullptr};
      product.b = panel;
      product.m = t.rows_count;
      product.n = std::min(columns, s.n - n0);
      product.k = t.k;
      product.c = t.c + n0;
      product.ldc = t.ldc;
      product.bias = t.bias ? t.bias + n0 : nullptr;
      s.gemm->run(product, 0, product.m, 0, 1);
    }
  });
  return MGE_OK;
}

// The sizes of a node.
struct Sizes {
  int64_t rows = 0, k = 0, n = 0, blocks = 0, block = 0;
  int bits = 4;
};

// Reads the sizes. Returns the reason if the node is not supported.
std::string ReadSizes(const Node& node, Sizes* out) {
  Sizes s = {.k = node.Int("K", 0),
             .n = node.Int("N", 0),
             .block = node.Int("block_size", 0),
             .bits = static_cast<int>(node.Int("bits", 4))};
  if (s.bits != 2 && s.bits != 4 && s.bits != 8) return "the weights have another number of bits than 2, 4 or 8";
  if (s.block < 16 || !std::has_single_bit(static_cast<uint64_t>(s.block)))
    return "the block is not a power of two from 16 on";
  if (s.k <= 0 || s.n <= 0 || node.Int("weight_prepacked", 0) != 0) return "the weights are in another form";
  if (node.has_input(kGroups)) return "g_idx is present";
  const Value a = node.input(kA);
  if (a.dtype() != MGE_DTYPE_F32 || node.input(kScales).dtype() != MGE_DTYPE_F32) return "the type is not float32";
  if (a.rank() < 1 || a.dim(-1) != s.k) return "A does not have K columns";
  s.blocks = (s.k - 1) / s.block + 1;
  s.rows = static_cast<int64_t>(a.elements()) / s.k;
  const auto scales = static_cast<uint64_t>(s.n * s.blocks);
  if (node.input(kB).elements() != scales * static_cast<uint64_t>(s.block / 8 * s.bits) ||
      node.input(kScales).elements() != scales) {
    return "B and scales do not fit";
  }
  if (node.has_input(kBias) && node.input(kBias).elements() != static_cast<uint64_t>(s.n)) return "the bias is broadcast";
  if (node.has_input(kZeros)) {
    const Value z = node.input(kZeros);
    if (z.dtype() == MGE_DTYPE_U8 && !z.is_constant()) return "packed zero points are not constant";
    const uint64_t bytes = static_cast<uint64_t>(s.n * ((s.blocks * s.bits + 7) / 8));
    if (z.elements() != (z.dtype() == MGE_DTYPE_U8 ? bytes : scales)) return "zero_points do not fit";
    if (z.dtype() != MGE_DTYPE_U8 && z.dtype() != MGE_DTYPE_F32) return "zero_points have another type";
  }
  *out = s;
  return {};
}

class PackedKernel : public Kernel {
 public:
  PackedKernel(const Problem& p, const Sizes& s, Isa isa) : sizes_(s) {
    for (int i = kA; i <= kBias; ++i) operands_[i] = p.operand(0, i);
    args_.table = &PackedProduct(isa);
    args_.registers = PackedRegisters(s.blocks, s.block, s.bits, args_.table->lanes);
    args_.task.weights = {nullptr, nullptr, nullptr, s.blocks, s.block, s.bits};
    args_.task.k = s.k;
    args_.task.rows_count = s.rows;
    args_.task.ldc = s.n;
    args_.has_zeros = operands_[kZeros] >= 0;
    args_.has_bias = operands_[kBias] >= 0;
    packs_zeros_ = args_.has_zeros && p.node().input(kZeros).dtype() == MGE_DTYPE_U8;
    args_.gemm = &Gemm(isa);
    args_.n = s.n;
    workspace_ = WorkspaceOf(s, isa);
    if (s.rows >= kManyRows) {
      args_.columns = PanelChunks(s, isa);
      return;
    }
    const int64_t floats = ArrangedFloats(args_.registers, s.bits, args_.table->lanes);
    args_.sums_offset = static_cast<uint64_t>(s.rows * floats) * sizeof(float);
    args_.rows = SplitWork(static_cast<uint64_t>(s.rows), 1e-3 * static_cast<double>(s.k));
    args_.columns = SplitWork(static_cast<uint64_t>(s.n), SerialUs(s, isa) / static_cast<double>(s.n));
  }

  static uint64_t WorkspaceOf(const Sizes& s, Isa isa) {
    if (s.rows >= kManyRows) {
      return PanelChunks(s, isa).count * static_cast<uint64_t>(s.k * Gemm(isa).columns) * sizeof(float);
    }
    const int lanes = PackedProduct(isa).lanes;
    const int64_t registers = PackedRegisters(s.blocks, s.block, s.bits, lanes);
    return static_cast<uint64_t>(s.rows * (ArrangedFloats(registers, s.bits, lanes) + registers * lanes)) * sizeof(float);
  }
  static double SerialUs(const Sizes& s, Isa isa) {
    const double per_us = isa == Isa::kAvx512 ? 70e3 : isa == Isa::kAvx2 ? 30e3 : 4e3;  // products
    const double weights = static_cast<double>(s.n) * static_cast<double>(s.blocks * s.block);
    if (s.rows >= kManyRows) return 5 * weights / per_us + GemmSerialUs({s.rows, s.n, s.k}, isa);
    const double rows = static_cast<double>(s.rows) + 1;  // unpacking costs as much as a row
    return 0.1 + std::max(StreamUs(weights * s.bits / 8), rows * weights / per_us);
  }

  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override {
    return packs_zeros_ && input == operands_[kZeros] ? static_cast<uint64_t>(sizes_.n * sizes_.blocks) * sizeof(float) : 0;
  }
  // Unpacks zero points to floats.
  Result Prepack(int, const void* source, void* destination) override {
    const auto* bytes = static_cast<const uint8_t*>(source);
    auto* out = static_cast<float*>(destination);
    const int64_t row = (sizes_.blocks * sizes_.bits + 7) / 8;
    for (int64_t n = 0; n < sizes_.n; ++n) {
      for (int64_t i = 0; i < sizes_.blocks; ++i) {
        const int64_t bit = i * sizes_.bits;
        const int number = bytes[n * row + bit / 8] >> (bit % 8) & ((1 << sizes_.bits) - 1);
        out[n * sizes_.blocks + i] = static_cast<float>(number);
      }
    }
    return {};
  }
  std::string prepack_form(int) const override {
    return "zero points " + std::to_string(sizes_.n) + " " + std::to_string(sizes_.blocks) + " " +
           std::to_string(sizes_.bits);
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->a = binding.input(operands_[kA]);
    a->b = binding.input(operands_[kB]);
    a->scales = binding.input(operands_[kScales]);
    if (a->has_zeros) a->zeros = binding.input(operands_[kZeros]);
    if (a->has_bias) a->bias = binding.input(operands_[kBias]);
    a->c = binding.output(0);
    a->workspace = binding.workspace();
    *step = sizes_.rows >= kManyRows ? StepFn::Of<LaunchManyRows>() : StepFn::Of<LaunchFewRows>();
    return {};
  }

 private:
  static Chunks PanelChunks(const Sizes& s, Isa isa) {
    const auto panels = static_cast<uint64_t>((s.n - 1) / Gemm(isa).columns + 1);
    Chunks c = SplitWork(panels, SerialUs(s, isa) / static_cast<double>(panels));
    if (c.count > kMostPanelChunks) c.per_chunk = (panels + kMostPanelChunks - 1) / kMostPanelChunks;
    c.count = (panels + c.per_chunk - 1) / c.per_chunk;
    return c;
  }

  const Sizes sizes_;
  int operands_[kBias + 1];  // operand numbers; -1: absent
  Args args_ = {};
  uint64_t workspace_ = 0;
  bool packs_zeros_ = false;
};

struct PackedWeightsRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Sizes s;
    if (const std::string why = ReadSizes(p.node(), &s); !why.empty()) return offers.Refuse(why);
    const Isa isa = AllowedIsa();
    Add(offers, isa,
        {.id = "cpu.packed_weights",
         .attributes = kExact,
         .workspace = PackedKernel::WorkspaceOf(s, isa),
         .cost_us = RunUs(p, PackedKernel::SerialUs(s, isa))});
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Sizes s;
    if (!ReadSizes(p.node(), &s).empty()) return nullptr;
    return std::make_unique<PackedKernel>(p, s, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<PackedWeightsRow>("MatMulNBits", "com.microsoft")};

}  // namespace

MGE_KERNELS(packed_weights) = kRows;

}  // namespace mge::cpu
