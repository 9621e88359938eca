// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, alone or with an epilogue, and products of one tensor with several matrices.
#include "plugins/gpu/kernels/matmul.h"

#include <algorithm>

#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"
#include "plugins/gpu/support/product.h"
#include "plugins/gpu/support/siblings.h"
#include "plugins/gpu/support/tiles.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kTiles = 0, kSplitK = 1, kAsBf16 = 2, kPlainLoops = 3, kMatrixUnits = 4, kMatrixUnitsSplitK = 5 };

// Returns the number of tiles of all batches.
int64_t TilesOf(const Product& p, int64_t tile = kTileSize) {
  return (p.args.m + tile - 1) / tile * ((p.args.n + tile - 1) / tile) * p.args.batch;
}

int64_t SplitsOf(const Problem& p, const Product& product) { return SplitsFor(p, TilesOf(product), product.args.k); }
uint64_t PartBytesOf(const Product& product, int64_t splits) {
  return PartBytes(product.type, splits, product.args.batch * product.args.m * product.args.n);
}

struct MatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true, /*adds=*/true)) return;
    Product product;
    if (Result r = FindProduct(p, &product); !r.ok()) return offers.Refuse(r.text());
    const MatMulArgs& args = product.args;
    std::vector<mge_in_place> in_place;
    if (product.residual >= 0 && product.residual != product.a && product.residual != product.b) {
      in_place.push_back({static_cast<uint32_t>(product.y), static_cast<uint32_t>(product.residual)});
    }
    if (IsInteger(product.type)) {
      if (ElementBytes(product.type) < 4 || p.node_count() > 1 || p.node().Is("Gemm")) {
        return offers.Refuse("no kernel for " + std::string(TypeName(product.type)));
      }
      return offers.Add({.id = "gpu.matmul.plain",
                         .attributes = kExact,
                         .cost_us = GpuUs(p, BytesOf(p), 20 * product.flops()),
                         .variant = kPlainLoops});
    }
    if (!IsFloating(product.type)) return offers.Refuse("no kernel for " + std::string(TypeName(product.type)));
    const double tiles_us = TilesUs(p, TilesOf(product), args.k), us = GpuUs(p, BytesOf(p), product.flops()) + tiles_us;
    offers.Add({.id = "gpu.matmul.tiles", .attributes = kExact, .cost_us = us, .variant = kTiles, .in_place = in_place});
    const int64_t splits = args.m && args.n ? SplitsOf(p, product) : 1;
    const bool units = args.k && HasMatrixUnits(p, product.type);
    const double gain = MatrixUnitsGain(p, product.type);
    const uint64_t units_attributes = MatrixUnitsAttributes(product.type);
    const std::string units_id = product.type == MGE_DTYPE_F32 ? "gpu.matmul.tf32" : "gpu.matmul.mma";
    if (units) {
      offers.Add({.id = units_id,
                  .rank = -1,
                  .attributes = units_attributes,
                  .cost_us = GpuUs(p, BytesOf(p), product.flops() / gain) + tiles_us / std::max(1.0, gain),
                  .variant = kMatrixUnits,
                  .in_place = in_place});
    }
    if (splits > 1) {
      const uint64_t part_bytes = PartBytesOf(product, splits);
      const double bytes = BytesOf(p) + 2.0 * static_cast<double>(part_bytes),
                   part_us = TilesUs(p, splits * TilesOf(product), args.k / splits);
      offers.Add({.id = "gpu.matmul.split_k",
                  .rank = 1,
                  .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
                  .workspace = part_bytes,
                  .cost_us = GpuUs(p, bytes, product.flops(), 2) + part_us,
                  .variant = kSplitK,
                  .in_place = in_place});
      if (units) {
        offers.Add({.id = units_id + "_split_k",
                    .attributes = units_attributes & ~uint64_t{MGE_KERNEL_BATCH_INVARIANT},
                    .workspace = part_bytes,
                    .cost_us = GpuUs(p, bytes, product.flops() / gain, 2) + part_us / std::max(1.0, gain),
                    .variant = kMatrixUnitsSplitK,
                    .in_place = in_place});
      }
    }
    if (product.type == MGE_DTYPE_F32) {  // the result of matrix units, computed with ordinary instructions
      offers.Add({.id = "gpu.matmul.as_bf16",
                  .rank = 20,
                  .attributes = kExact | MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_TENSOR_CORE,
                  .cost_us = us * 1.1,
                  .variant = kAsBf16,
                  .in_place = in_place});
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Product product;
    if (!FindProduct(p, &product).ok()) return nullptr;
    MatMulArgs& args = product.args;
    Recipe recipe;
    int64_t outputs = args.batch * args.m * args.n;
    if (outputs == 0) return std::move(recipe).Make();
    bool one_use =
        product.b != product.a && product.b != product.c && product.b != product.bias && product.b != product.residual;
    // A constant factor is stored by columns (Gemm with transB). Tiles are loaded by rows, those for matrix units in any
    // order.
    const bool units = c.variant == kMatrixUnits || c.variant == kMatrixUnitsSplitK;
    if (!units && args.b_k == 1 && args.b_column == args.k && args.batch_rank == 0 && one_use &&
        p.input(product.b).is_constant() && recipe.Pack(product.b, {1, args.n, args.k, ElementBytes(product.type)})) {
      args.b_k = args.n;
      args.b_column = 1;
    }
    auto a = Operand::In(product.a), b = Operand::In(product.b), null = Operand::Null();
    auto start = Operand::MaybeIn(product.c), bias = Operand::MaybeIn(product.bias),
         residual = product.adds ? Operand::Out() : Operand::MaybeIn(product.residual), y = Operand::Out(product.y),
         before = product.before < 0 ? null : Operand::Out(product.before);
    if (c.variant == kPlainLoops) {
      recipe.Add(ElementBytes(product.type) == 8 ? "matmul_plain_u64" : "matmul_plain_u32", Spread(outputs), args,
                 {a, b, null, null, null, Operand::Out()});
    } else if (c.variant == kSplitK || c.variant == kMatrixUnitsSplitK) {
      args.splits = static_cast<int32_t>(SplitsOf(p, product));
      recipe.SetWorkspace(PartBytesOf(product, args.splits));
      Shape3 shape = Rows(TilesOf(product) * args.splits);
      if (units) shape.block[0] = 128;
      recipe.Add(KernelFor(units ? "matmul_part_mma64" : "matmul_part", product.type), shape, args,
                 {a, b, null, null, null, Operand::Work()});
      recipe.Add(KernelFor("matmul_join", product.type), Spread(outputs), args,
                 {Operand::Work(), null, start, bias, residual, y, before});
    } else if (c.variant == kMatrixUnits) {
      Shape3 shape;
      const auto tiles = [&](int64_t tile) { return TilesOf(product, tile); };
      const std::string kernel = MatrixUnitsKernel("matmul_mma", product.type, tiles, &shape);
      recipe.Add(kernel, shape, args, {a, b, start, bias, residual, y, before});
    } else {
      std::string kernel = c.variant == kAsBf16 ? "matmul_as_bf16_f32" : KernelFor("matmul", product.type);
      recipe.Add(kernel, Rows(TilesOf(product)), args, {a, b, start, bias, residual, y, before});
    }
    return std::move(recipe).Make();
  }
};

struct SiblingsRow {
  static void Offer(const Problem& p, Offers& offers) {
    Siblings found;
    if (!FindSiblings(p, &found) || !Accept(p, offers, /*groups=*/true)) return;
    const Product product = ProductOf(p, found.products.front());
    const auto count = static_cast<int64_t>(found.products.size());
    const double operations = static_cast<double>(count) * product.flops(), bytes = BytesOf(p),
                 waves_us = TilesUs(p, count * TilesOf(product), product.args.k);
    offers.Add({.id = "gpu.matmul.siblings",
                .attributes = kExact,
                .cost_us = GpuUs(p, bytes, operations) + waves_us,
                .variant = kTiles});
    if (!HasMatrixUnits(p, product.type)) return;
    const double gain = MatrixUnitsGain(p, product.type);
    offers.Add({.id = product.type == MGE_DTYPE_F32 ? "gpu.matmul.siblings.tf32" : "gpu.matmul.siblings.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(product.type),
                .cost_us = GpuUs(p, bytes, operations / gain) + waves_us / std::max(1.0, gain),
                .variant = kMatrixUnits});
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Siblings found;
    if (!FindSiblings(p, &found)) return nullptr;
    const Product product = ProductOf(p, found.products.front());
    SiblingsArgs args = {};
    args.product = product.args;
    args.count = static_cast<int64_t>(found.products.size());
    std::vector<Operand> b, bias, y;
    for (const Siblings::Product& one : found.products) {
      b.push_back(Operand::In(p.operand(one.b)));
      bias.push_back(Operand::MaybeIn(one.bias < 0 ? -1 : p.operand(one.bias)));
      y.push_back(Operand::Out(OutputNumber(p, one.output)));
    }
    std::vector<Operand> pointers = {Operand::In(p.operand(found.a))};
    for (std::vector<Operand>* list : {&b, &bias, &y}) {
      list->resize(kMaxSiblings, Operand::Null());
      pointers.insert(pointers.end(), list->begin(), list->end());
    }
    std::string kernel = KernelFor("matmul_siblings", product.type);
    Shape3 shape = Rows(args.count * TilesOf(product));
    if (c.variant == kMatrixUnits) {
      const auto tiles = [&](int64_t tile) { return args.count * TilesOf(product, tile); };
      kernel = MatrixUnitsKernel("matmul_siblings_mma", product.type, tiles, &shape);
    }
    Recipe recipe;
    recipe.Add(kernel, shape, args, std::span<const Operand>(pointers));
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<MatMulRow>("MatMul"), Row<MatMulRow>("Gemm"), Row<SiblingsRow>("MatMul")};

}  // namespace

MGE_KERNELS(matmul) = kRows;

}  // namespace mge::gpu
