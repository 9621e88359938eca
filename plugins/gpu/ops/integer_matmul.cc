// SPDX-License-Identifier: Apache-2.0
// MatMulInteger and QLinearMatMul.
#include "plugins/gpu/kernels/integer_matmul.h"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/support/bytes.h"
#include "plugins/gpu/support/integer_product.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

constexpr int64_t kTile = 64;

int64_t TilesOf(const IntegerMatMulArgs& args) {
  return (args.m + kTile - 1) / kTile * ((args.n + kTile - 1) / kTile) * args.batch;
}

// Packs a constant b for loads along k. Returns whether its columns are dense along k.
bool PackColumns(const Problem& p, const IntegerProduct& product, Recipe& recipe) {
  const IntegerMatMulArgs& args = product.args;
  const Packing packing = {product.b_matrices, args.k, args.n, 1};
  const int others[] = {product.a,       product.a_zero,  product.b_zero, product.a_scale,
                        product.b_scale, product.y_scale, product.y_zero};
  const bool one_use = std::ranges::find(others, product.b) == std::end(others);
  return !packing.Moves() || (one_use && p.input(product.b).is_constant() && recipe.Pack(product.b, packing));
}

struct IntegerMatMulRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    IntegerProduct product;
    if (Result r = FindIntegerProduct(p, &product); !r.ok()) return offers.Refuse(r.text());
    // A tile is computed by one block, so few tiles leave the device idle.
    const double tile_us = 0.05 * static_cast<double>((product.args.k + kTile - 1) / kTile),
                 waves = std::ceil(static_cast<double>(TilesOf(product.args)) / RoofsOf(p.handle()).multiprocessors);
    offers.Add({.id = "gpu.matmul.integer",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), product.operations() / kGainOfBytes) + tile_us * waves});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    IntegerProduct product;
    if (!FindIntegerProduct(p, &product).ok()) return nullptr;
    Recipe recipe;
    IntegerMatMulArgs& args = product.args;
    if (args.batch * args.m * args.n == 0) return std::move(recipe).Make();
    args.packed = PackColumns(p, product, recipe);
    const auto in = [](int input) { return Operand::MaybeIn(input); };
    const std::string kernel = product.quantizes() ? "qlinear_matmul" : "integer_matmul";
    recipe.Add(args.packed ? kernel + "_packed" : kernel, Rows(TilesOf(args)), args,
               {in(product.a), in(product.b), in(product.a_zero), in(product.b_zero), in(product.a_scale),
                in(product.b_scale), in(product.y_scale), in(product.y_zero), Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<IntegerMatMulRow>("MatMulInteger"), Row<IntegerMatMulRow>("QLinearMatMul")};

}  // namespace

MGE_KERNELS(integer_matmul) = kRows;

}  // namespace mge::gpu
