// SPDX-License-Identifier: Apache-2.0
// MatMulInteger, alone or with the nodes that make its sums real numbers, and QLinearMatMul.
#include "plugins/gpu/kernels/integer_matmul.h"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/support/integer_product.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kTiles = 0, kMatrixUnits = 1 };

int64_t TilesOf(const IntegerMatMulArgs& args, int64_t tile = 64) {
  return (args.m + tile - 1) / tile * ((args.n + tile - 1) / tile) * args.batch;
}

const char* KernelOf(IntegerResult result) {
  switch (result) {
    case IntegerResult::kQuantized: return "qlinear_matmul";
    case IntegerResult::kReals: return "scaled_matmul";
    case IntegerResult::kSums: break;
  }
  return "integer_matmul";
}

// Returns the packing of b whose columns are dense along k.
Packing PackingOf(const IntegerProduct& product) { return {product.b_matrices, product.args.k, product.args.n, 1}; }
bool CanPack(const Problem& p, const IntegerProduct& product) {
  const int others[] = {product.a,       product.a_zero,  product.b_zero, product.a_scale,
                        product.b_scale, product.y_scale, product.y_zero, product.bias};
  return p.input(product.b).is_constant() && std::ranges::find(others, product.b) == std::end(others);
}

struct IntegerMatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    IntegerProduct product;
    if (Result r = FindIntegerProduct(p, &product); !r.ok()) return offers.Refuse(r.text());
    // A tile is computed by one block, so few tiles leave the device idle.
    const double tile_us = 0.05 * static_cast<double>((product.args.k + 63) / 64),
                 waves = std::ceil(static_cast<double>(TilesOf(product.args)) / RoofsOf(p.handle()).multiprocessors);
    offers.Add({.id = "gpu.matmul.integer",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), product.operations() / kGainOfBytes) + tile_us * waves,
                .variant = kTiles});
    const bool packed = !PackingOf(product).Moves() || CanPack(p, product);
    if (!packed || !HasMatrixUnits(p, MGE_DTYPE_I8)) return;
    const double gain = MatrixUnitsGain(p, MGE_DTYPE_I8);
    offers.Add({.id = "gpu.matmul.integer.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(MGE_DTYPE_I8),
                .cost_us = GpuUs(p, BytesOf(p), product.operations() / gain) + tile_us * kGainOfBytes / gain * waves,
                .variant = kMatrixUnits});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    IntegerProduct product;
    if (!FindIntegerProduct(p, &product).ok()) return nullptr;
    Recipe recipe;
    IntegerMatMulArgs& args = product.args;
    if (args.batch * args.m * args.n == 0) return std::move(recipe).Make();
    const Packing packing = PackingOf(product);
    args.packed = !packing.Moves() || (CanPack(p, product) && recipe.Pack(product.b, packing));
    std::string kernel = KernelOf(product.result);
    Shape3 shape = Rows(TilesOf(args));
    if (c.variant == kMatrixUnits) {
      const auto tiles = [&](int64_t tile) { return TilesOf(args, tile); };
      kernel = MatrixUnitsKernel(kernel + "_mma", MGE_DTYPE_I8, tiles, &shape);
    } else if (args.packed) {
      kernel += "_packed";
    }
    const auto in = [](int input) { return Operand::MaybeIn(input); };
    recipe.Add(kernel, shape, args,
               {in(product.a), in(product.b), in(product.a_zero), in(product.b_zero), in(product.a_scale),
                in(product.b_scale), in(product.y_scale), in(product.y_zero), in(product.bias), Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<IntegerMatMulRow>("MatMulInteger"), Row<IntegerMatMulRow>("QLinearMatMul")};

}  // namespace

MGE_KERNELS(integer_matmul) = kRows;

}  // namespace mge::gpu
