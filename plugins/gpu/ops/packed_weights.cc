// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime: few rows are multiplied with the weights as they are stored, many with the weights as numbers in
// the workspace.
#include "plugins/gpu/kernels/packed_weights.h"

#include "mge/plugin/problems/n_bits_product.hpp"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

// The number of rows from which on unpacking the weights once takes less time than reading them for each kPackedRows rows.
constexpr int64_t kManyRows = 17;

PackedWeightsArgs ArgsOf(const NBitsProduct& w) {
  PackedWeightsArgs args = {};
  args.m = w.rows;
  args.n = w.n;
  args.k = w.k;
  args.blocks = w.blocks;
  args.block = w.block;
  args.word_block = w.block * w.bits / 32;
  args.column_bytes = w.column_bytes();
  args.zero_bytes = w.zero_bytes();
  args.bits = w.bits;
  args.packed_zeros = w.zeros == NBitsProduct::Zeros::kPacked;
  return args;
}

// Whether the weights can be read by words: a constant is aligned.
bool ReadsWords(const Problem& p, const NBitsProduct& w) {
  return w.rows < kManyRows && w.block * w.bits % 32 == 0 && p.input(InputOf(p, NBitsProduct::kB)).is_constant();
}

Result Build(const Problem& p, const NBitsProduct& w, Recipe& recipe) {
  const auto in = [&](int input) { return p.node().has_input(input) ? Operand::In(InputOf(p, input)) : Operand::Null(); };
  const Operand a = in(NBitsProduct::kA), b = in(NBitsProduct::kB), scales = in(NBitsProduct::kScales),
                zeros = in(NBitsProduct::kZeros), bias = in(NBitsProduct::kBias), none = Operand::Null();
  if (w.rows == 0) return {};
  const PackedWeightsArgs args = ArgsOf(w);
  if (ReadsWords(p, w)) {
    constexpr int64_t kWarpsOfABlock = 256 / 32;
    const int64_t units = w.n * ((w.rows + kPackedRows - 1) / kPackedRows);
    recipe.Add(KernelFor("packed_product" + std::to_string(w.bits), w.type),
               Rows((units + kWarpsOfABlock - 1) / kWarpsOfABlock), args, {a, b, scales, zeros, bias, Operand::Out()});
    return {};
  }
  recipe.SetWorkspace(static_cast<uint64_t>(w.n * w.k) * ElementBytes(w.type));
  recipe.Add(KernelFor("unpack_weights", w.type), Spread(w.n * w.k), args, {none, b, scales, zeros, none, Operand::Work()});
  MatMulArgs product = {};
  product.m = w.rows;
  product.n = w.n;
  product.k = w.k;
  product.batch = 1;
  product.a_row = product.b_column = w.k;
  product.a_k = product.b_k = product.bias_column = 1;
  product.alpha = 1;
  product.splits = 1;
  const auto tiles = [&](int64_t tile) { return (w.rows + tile - 1) / tile * ((w.n + tile - 1) / tile); };
  const bool units = w.type != MGE_DTYPE_F32 && HasMatrixUnits(p, w.type);
  Shape3 shape = Rows(tiles(64));
  const std::string kernel = units ? MatrixUnitsKernel("matmul_mma", w.type, tiles, &shape) : KernelFor("matmul", w.type);
  recipe.Add(kernel, shape, product, {a, Operand::Work(), none, bias, none, Operand::Out(), none});
  return {};
}

struct PackedWeightsRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    NBitsProduct w;
    if (const std::string why = ReadNBitsProduct(p.node(), &w); !why.empty()) return offers.Refuse(why);
    if (!IsFloating(w.type) || w.type == MGE_DTYPE_F64) return offers.Refuse("only float32 and 16-bit floats");
    Recipe recipe;
    if (Result r = Build(p, w, recipe); !r.ok()) return offers.Refuse(r.text());
    const double operations = 2.0 * static_cast<double>(w.rows) * static_cast<double>(w.n) * static_cast<double>(w.k);
    const bool units = !ReadsWords(p, w) && w.type != MGE_DTYPE_F32 && HasMatrixUnits(p, w.type);
    offers.Add({.id = "gpu.packed_weights",
                .attributes = units ? MatrixUnitsAttributes(w.type) : kExact,
                .workspace = recipe.workspace(),
                .cost_us = GpuUs(p, BytesOf(p) + 2.0 * static_cast<double>(recipe.workspace()),
                                 units ? operations / MatrixUnitsGain(p, w.type) : operations, recipe.launches())});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    NBitsProduct w;
    Recipe recipe;
    return ReadNBitsProduct(p.node(), &w).empty() && Build(p, w, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }
};

constexpr KernelRow kRows[] = {Row<PackedWeightsRow>("MatMulNBits", "com.microsoft")};

}  // namespace

MGE_KERNELS(packed_weights) = kRows;

}  // namespace mge::gpu
