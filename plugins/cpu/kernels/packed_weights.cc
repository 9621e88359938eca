// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime: float32 rows times weights of 2, 4 or 8 bits, which stay packed. Few rows are multiplied with
// the packed weights. For many rows, each chunk unpacks one panel of columns after the other. If the node
// allows it (accuracy_level 4), rows are rounded to 8 bits. 16-bit floats are converted before and after the product.
#include "vec/packed_weights.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "mge/plugin/problems/n_bits_product.hpp"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/packed_int8.h"

namespace mge::cpu {
namespace {

using enum NBitsProduct::Input;

constexpr int64_t kManyRows = 8;
constexpr uint64_t kMaxPanelChunks = 16;  // each has a panel in the workspace

// 16-bit floats: the rows and the result as floats in the workspace.
struct HalfArgs {
  mge_dtype type;  // of the rows and the result
  const GemmTable* gemm;
  uint64_t row_offset, sums_offset;
  int64_t k, n;
  Slot a, c, workspace;

  bool is_half() const { return IsHalf(type); }
  // Returns a row of A as floats.
  const float* Row(const mge_run* run, int64_t row) const {
    if (!is_half()) return At<float>(run, a) + row * k;
    auto* wide = reinterpret_cast<float*>(At<char>(run, workspace) + row_offset) + row * k;
    gemm->widen(At<char>(run, a) + row * k * SizeOf(type), type, k, 1.0f, wide);
    return wide;
  }
  // Returns where the result is computed.
  float* Sums(const mge_run* run) const {
    return is_half() ? reinterpret_cast<float*>(At<char>(run, workspace) + sums_offset) : At<float>(run, c);
  }
  // Converts columns n0..n1 of the result.
  void Finish(const mge_run* run, int64_t rows, int64_t n0, int64_t n1) const {
    if (is_half()) gemm->narrow(Sums(run), n, At<char>(run, c), type, n, 0, rows, n0, n1);
  }
};

struct Args {
  const PackedTable* table;
  const GemmTable* gemm;
  PackedTask task;
  Chunks rows, columns;  // for many rows, `columns` are panels
  HalfArgs half;
  int64_t n, registers;
  uint64_t sums_offset;
  Slot b, scales, zeros, bias, workspace;
  bool has_zeros, has_bias;
};

PackedTask TaskOf(const Args& s, const mge_run* run) {
  PackedTask t = s.task;
  t.weights.data = At<uint8_t>(run, s.b);
  t.weights.scales = At<float>(run, s.scales);
  if (s.has_zeros) t.weights.zeros = At<float>(run, s.zeros);
  if (s.has_bias) t.bias = At<float>(run, s.bias);
  t.c = s.half.Sums(run);
  return t;
}

mge_code LaunchFewRows(const Args& s, const mge_run* run) {
  PackedTask t = TaskOf(s, run);
  auto* rows = At<float>(run, s.workspace);
  auto* sums = reinterpret_cast<float*>(At<char>(run, s.workspace) + s.sums_offset);
  const int lanes = s.table->lanes;
  const int64_t floats = ArrangedFloats(s.registers, t.weights.bits, lanes);
  ForChunks(run, s.rows, [&](uint64_t begin, uint64_t end) {
    for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r) {
      s.table->arrange(s.half.Row(run, r), t.k, t.weights.bits, s.registers, rows + r * floats,
                       sums + r * s.registers * lanes);
    }
  });
  t.rows = rows;
  t.sums = sums;
  ForChunks(run, s.columns, [&](uint64_t begin, uint64_t end) {
    s.table->run(t, static_cast<int64_t>(begin), static_cast<int64_t>(end));
    s.half.Finish(run, t.rows_count, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
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
      product.a = {At<char>(run, s.half.a), s.half.type, t.k, 1, 1.0f, nullptr};
      product.b = panel;
      product.m = t.rows_count;
      product.n = std::min(columns, s.n - n0);
      product.k = t.k;
      product.c = t.c + n0;
      product.ldc = t.ldc;
      product.bias = t.bias ? t.bias + n0 : nullptr;
      s.gemm->run(product, 0, product.m, 0, 1);
      s.half.Finish(run, product.m, n0, n0 + product.n);
    }
  });
  return MGE_OK;
}

using Sizes = NBitsProduct;
bool HasHalves(const Sizes& s) { return IsHalf(s.type); }

// Reads the sizes. Returns the reason if the node is not supported.
std::string ReadSizes(const Node& node, Sizes* out) {
  Sizes s;
  if (std::string why = ReadNBitsProduct(node, &s); !why.empty()) return why;
  if (s.block < 16 || !std::has_single_bit(static_cast<uint64_t>(s.block)))
    return "the block is not a power of two from 16 on";
  if (s.type != MGE_DTYPE_F32 && !HasHalves(s)) return "the type is not supported";
  for (int i : {kScales, kZeros, kBias}) {
    if (HasHalves(s) && node.has_input(i) && !node.input(i).is_constant()) return "16-bit scales are not constant";
  }
  if (s.zeros == Sizes::Zeros::kPacked && !node.input(kZeros).is_constant()) return "packed zero points are not constant";
  *out = s;
  return {};
}

// Returns a zero point of column n from packed ones.
float ZeroAt(const uint8_t* bytes, const Sizes& s, int64_t n, int64_t block) {
  const int64_t bit = block * s.bits;
  const uint8_t byte = bytes[n * s.zero_bytes() + bit / 8];
  return static_cast<float>(byte >> (bit % 8) & ((1 << s.bits) - 1));
}

// Adds the parts of the workspace for 16-bit floats to `bytes`. `widens`: the rows are among them.
HalfArgs HalfOf(const Sizes& s, bool widens, Isa isa, uint64_t* bytes) {
  HalfArgs half = {s.type, &Gemm(isa), 0, 0, s.k, s.n, {}, {}, {}};
  if (!HasHalves(s)) return half;
  const auto add = [&](int64_t floats) {
    *bytes = (*bytes + 63) / 64 * 64 + static_cast<uint64_t>(floats) * sizeof(float);
    return *bytes - static_cast<uint64_t>(floats) * sizeof(float);
  };
  if (widens) half.row_offset = add(s.rows * s.k);
  half.sums_offset = add(s.rows * s.n);
  return half;
}

// Sets the slots of the arguments of either kernel. `operands` are the operand numbers of the inputs.
template <typename A>
void BindOperands(const Binding& binding, const int* operands, A* a) {
  a->half.a = binding.input(operands[kA]);
  a->half.c = binding.output(0);
  a->half.workspace = binding.workspace();
  a->b = binding.input(operands[kB]);
  a->scales = binding.input(operands[kScales]);
  if (a->has_zeros) a->zeros = binding.input(operands[kZeros]);
  if (a->has_bias) a->bias = binding.input(operands[kBias]);
  a->workspace = binding.workspace();
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
    workspace_ = WorkspaceOf(s, isa, &args_.half);
    if (s.rows >= kManyRows) {
      args_.columns = PanelChunks(s, isa);
      return;
    }
    const int64_t floats = ArrangedFloats(args_.registers, s.bits, args_.table->lanes);
    args_.sums_offset = static_cast<uint64_t>(s.rows * floats) * sizeof(float);
    args_.rows = SplitWork(static_cast<uint64_t>(s.rows), 1e-3 * static_cast<double>(s.k));
    args_.columns = SplitWork(static_cast<uint64_t>(s.n), SerialUs(s, isa) / static_cast<double>(s.n));
  }

  static uint64_t WorkspaceOf(const Sizes& s, Isa isa, HalfArgs* half) {
    const bool many = s.rows >= kManyRows;
    const int lanes = PackedProduct(isa).lanes;
    const int64_t registers = PackedRegisters(s.blocks, s.block, s.bits, lanes);
    const int64_t floats = many ? static_cast<int64_t>(PanelChunks(s, isa).count) * s.k * Gemm(isa).columns
                                : s.rows * (ArrangedFloats(registers, s.bits, lanes) + registers * lanes);
    uint64_t bytes = static_cast<uint64_t>(floats) * sizeof(float);
    *half = HalfOf(s, !many, isa, &bytes);
    return bytes;
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
    const auto numbers = static_cast<uint64_t>(sizes_.n * sizes_.blocks) * sizeof(float);
    if (packs_zeros_ && input == operands_[kZeros]) return numbers;
    if (!HasHalves(sizes_)) return 0;
    if (input == operands_[kScales] || (args_.has_zeros && input == operands_[kZeros])) return numbers;
    return args_.has_bias && input == operands_[kBias] ? static_cast<uint64_t>(sizes_.n) * sizeof(float) : 0;
  }
  // Unpacks zero points, and converts 16-bit floats.
  Result Prepack(int input, const void* source, void* destination) override {
    auto* out = static_cast<float*>(destination);
    if (!packs_zeros_ || input != operands_[kZeros]) {
      args_.gemm->widen(source, sizes_.type, static_cast<int64_t>(prepack_bytes(input) / sizeof(float)), 1.0f, out);
      return {};
    }
    const auto* bytes = static_cast<const uint8_t*>(source);
    for (int64_t n = 0; n < sizes_.n; ++n) {
      for (int64_t i = 0; i < sizes_.blocks; ++i) *out++ = ZeroAt(bytes, sizes_, n, i);
    }
    return {};
  }
  std::string prepack_form(int input) const override {
    if (!packs_zeros_ || input != operands_[kZeros]) return "floats";
    return "zero points " + std::to_string(sizes_.n) + " " + std::to_string(sizes_.blocks) + " " +
           std::to_string(sizes_.bits);
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    BindOperands(binding, operands_, a);
    *step = sizes_.rows >= kManyRows ? StepFn::Of<LaunchManyRows>() : StepFn::Of<LaunchFewRows>();
    return {};
  }

 private:
  static Chunks PanelChunks(const Sizes& s, Isa isa) {
    const auto panels = static_cast<uint64_t>((s.n - 1) / Gemm(isa).columns + 1);
    Chunks c = SplitWork(panels, SerialUs(s, isa) / static_cast<double>(panels));
    if (c.count > kMaxPanelChunks) c.per_chunk = (panels + kMaxPanelChunks - 1) / kMaxPanelChunks;
    c.count = (panels + c.per_chunk - 1) / c.per_chunk;
    return c;
  }

  const Sizes sizes_;
  int operands_[kBias + 1];  // operand numbers; -1: absent
  Args args_ = {};
  uint64_t workspace_ = 0;
  bool packs_zeros_ = false;
};

// ---------------------------------------------------------------- rows of 8 bits

struct Int8Args {
  const PackedInt8Table* table;
  void (*run)(const PackedInt8Task& task, int64_t p0, int64_t p1);
  PackedInt8Task task;
  Chunks rows, panels;
  HalfArgs half;
  uint64_t blocks_offset;
  Slot b, scales, zeros, bias, workspace;
  bool has_zeros, has_bias;
};

mge_code LaunchInt8(const Int8Args& s, const mge_run* run) {
  PackedInt8Task t = s.task;
  auto* rows = At<int8_t>(run, s.workspace);
  auto* blocks = reinterpret_cast<Int8RowBlock*>(At<char>(run, s.workspace) + s.blocks_offset);
  ForChunks(run, s.rows, [&](uint64_t begin, uint64_t end) {
    for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r) {
      s.table->round(s.half.Row(run, r), t.size, rows + r * t.size.blocks * t.size.block, blocks + r * t.size.blocks);
    }
  });
  t.panels = At<uint32_t>(run, s.b);
  t.scales = At<float>(run, s.scales);
  if (s.has_zeros) t.zeros = At<float>(run, s.zeros);
  if (s.has_bias) t.bias = At<float>(run, s.bias);
  t.rows = rows;
  t.row_blocks = blocks;
  t.c = s.half.Sums(run);
  ForChunks(run, s.panels, [&](uint64_t begin, uint64_t end) {
    s.run(t, static_cast<int64_t>(begin), static_cast<int64_t>(end));
    const int64_t n0 = static_cast<int64_t>(begin) * s.table->lanes, n1 = static_cast<int64_t>(end) * s.table->lanes;
    s.half.Finish(run, t.rows_count, n0, std::min(n1, t.size.n));
  });
  return MGE_OK;
}

class Int8WeightsKernel : public Kernel {
 public:
  Int8WeightsKernel(const Problem& p, const Sizes& s, Isa isa) : sizes_(s) {
    for (int i = kA; i <= kBias; ++i) operands_[i] = p.operand(0, i);
    args_.table = &PackedInt8(isa);
    args_.run = AllowsVnni(isa) ? args_.table->run_vnni : args_.table->run;
    args_.task.size = {s.k, s.n, s.blocks, s.block, s.bits};
    args_.task.rows_count = s.rows;
    args_.has_zeros = operands_[kZeros] >= 0;
    args_.has_bias = operands_[kBias] >= 0;
    args_.blocks_offset = BlocksOffset(s);
    workspace_ = WorkspaceOf(s, isa, &args_.half);
    packs_bits_ = args_.has_zeros && p.node().input(kZeros).dtype() == MGE_DTYPE_U8;
    args_.rows = SplitWork(static_cast<uint64_t>(s.rows), 1e-3 * static_cast<double>(s.k));
    args_.panels = SplitWork(static_cast<uint64_t>(panels()), SerialUs(s, isa) / static_cast<double>(panels()));
  }

  // Returns whether the operands allow packing, and the processor the products.
  static bool Allows(const Problem& p, const Sizes& s, Isa isa) {
    const Node& node = p.node();
    if (node.Int("accuracy_level") != 4 || s.bits == 2 || !PackedInt8(isa).run) return false;
    const int packed[] = {p.operand(0, kB), p.operand(0, kScales), p.operand(0, kZeros), p.operand(0, kBias)};
    for (int i = 0; i < 3; ++i) {
      if (packed[i] < 0) continue;
      if (!p.input(packed[i]).is_constant() || std::count(std::begin(packed), std::end(packed), packed[i]) != 1)
        return false;
    }
    return true;
  }
  static uint64_t WorkspaceOf(const Sizes& s, Isa isa, HalfArgs* half) {
    uint64_t bytes = BlocksOffset(s) + static_cast<uint64_t>(s.rows * s.blocks) * sizeof(Int8RowBlock);
    *half = HalfOf(s, /*widens=*/true, isa, &bytes);
    return bytes;
  }
  static double SerialUs(const Sizes& s, Isa isa) {
    const double per_us = isa == Isa::kAvx512 ? 200e3 : 80e3;  // products
    const double weights = static_cast<double>(s.n) * static_cast<double>(s.blocks * s.block);
    const double rows = static_cast<double>(s.rows) + 1;
    return 0.1 + std::max(StreamUs(weights * s.bits / 8), rows * weights / per_us);
  }

  uint32_t args_bytes() const override { return sizeof(Int8Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override {
    const auto numbers = static_cast<uint64_t>(panels() * lanes() * sizes_.blocks) * sizeof(float);
    if (input == operands_[kB]) return static_cast<uint64_t>(panels() * lanes() * words()) * sizeof(uint32_t);
    if (input == operands_[kScales] || (args_.has_zeros && input == operands_[kZeros])) return numbers;
    const bool bias = HasHalves(sizes_) && args_.has_bias && input == operands_[kBias];
    return bias ? static_cast<uint64_t>(sizes_.n) * sizeof(float) : 0;
  }
  Result Prepack(int input, const void* source, void* destination) override {
    if (input == operands_[kB]) {
      for (int64_t p = 0; p < panels(); ++p) {
        args_.table->pack(static_cast<const uint32_t*>(source), words(), sizes_.n, p, static_cast<uint32_t*>(destination));
      }
      return {};
    }
    auto* out = static_cast<float*>(destination);
    if (input == operands_[kBias]) {
      args_.half.gemm->widen(source, sizes_.type, sizes_.n, 1.0f, out);
      return {};
    }
    const bool zeros = input != operands_[kScales];
    const auto* bytes = static_cast<const uint8_t*>(source);
    std::vector<float> numbers;
    if (!zeros || !packs_bits_) {
      numbers.resize(static_cast<size_t>(sizes_.n * sizes_.blocks));
      args_.half.gemm->widen(source, sizes_.type, sizes_.n * sizes_.blocks, 1.0f, numbers.data());
    }
    const float middle = static_cast<float>(1 << (sizes_.bits - 1));
    for (int64_t n = 0; n < panels() * lanes(); ++n) {
      float* column = out + n / lanes() * lanes() * sizes_.blocks + n % lanes();
      for (int64_t i = 0; i < sizes_.blocks; ++i) {
        float& number = column[i * lanes()];
        if (n >= sizes_.n) {
          number = 0;
        } else if (zeros && packs_bits_) {
          number = ZeroAt(bytes, sizes_, n, i) - middle;
        } else {
          number = numbers[static_cast<size_t>(n * sizes_.blocks + i)] - (zeros ? middle : 0);
        }
      }
    }
    return {};
  }
  std::string prepack_form(int input) const override {
    if (input == operands_[kBias]) return "floats";
    std::string form = input == operands_[kB] ? "words of" : input == operands_[kScales] ? "scales of" : "zero points of";
    for (int64_t n : {sizes_.n, sizes_.blocks, sizes_.block, int64_t{sizes_.bits}, lanes()}) form += " " + std::to_string(n);
    return form;
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    auto* a = new (args) Int8Args(args_);
    BindOperands(binding, operands_, a);
    *step = StepFn::Of<LaunchInt8>();
    return {};
  }

 private:
  static uint64_t BlocksOffset(const Sizes& s) {
    return (static_cast<uint64_t>(s.rows * s.blocks * s.block) + 63) / 64 * 64;
  }
  int64_t lanes() const { return args_.table->lanes; }
  int64_t panels() const { return (sizes_.n - 1) / lanes() + 1; }
  int64_t words() const { return sizes_.blocks * sizes_.block * sizes_.bits / 32; }

  const Sizes sizes_;
  int operands_[kBias + 1];  // operand numbers; -1: absent
  Int8Args args_ = {};
  uint64_t workspace_ = 0;
  bool packs_bits_ = false;
};

struct PackedWeightsRow {
  enum Variant : uint64_t { kFloat, kInt8 };

  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Sizes s;
    if (const std::string why = ReadSizes(p.node(), &s); !why.empty()) return offers.Refuse(why);
    const Isa isa = AllowedIsa();
    HalfArgs half;
    if (Int8WeightsKernel::Allows(p, s, isa)) {
      Add(offers, isa,
          {.id = "cpu.packed_weights.int8",
           .attributes = kExact | MGE_KERNEL_MODEL_PRECISION,
           .workspace = Int8WeightsKernel::WorkspaceOf(s, isa, &half),
           .cost_us = RunUs(p, Int8WeightsKernel::SerialUs(s, isa)),
           .variant = kInt8});
    }
    Add(offers, isa,
        {.id = "cpu.packed_weights",
         .attributes = kExact,
         .workspace = PackedKernel::WorkspaceOf(s, isa, &half),
         .cost_us = RunUs(p, PackedKernel::SerialUs(s, isa)),
         .variant = kFloat});
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Sizes s;
    if (!ReadSizes(p.node(), &s).empty()) return nullptr;
    if (KindOf(c) == kInt8) return std::make_unique<Int8WeightsKernel>(p, s, IsaOf(c));
    return std::make_unique<PackedKernel>(p, s, IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<PackedWeightsRow>("MatMulNBits", "com.microsoft")};

}  // namespace

MGE_KERNELS(packed_weights) = kRows;

}  // namespace mge::cpu
