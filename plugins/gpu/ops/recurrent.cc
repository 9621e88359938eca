// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: one product for the inputs of all steps, which may use matrix units, then one launch for all steps.
#include "plugins/gpu/kernels/recurrent.h"

#include <algorithm>
#include <string>
#include <utility>

#include "mge/plugin/problems/recurrent.hpp"
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

enum Variant : uint32_t { kPlain, kMatrixUnits };  // of the product

struct Sizes {
  int64_t rows = 0, width = 0, chains = 0;  // rows of X, columns of the gates, sequences in all directions
  mge_dtype type = MGE_DTYPE_UNDEFINED;
};

Result Build(const Problem& p, uint32_t variant, Recipe& recipe, Recurrence* found, Sizes* sizes) {
  Value x = p.node().input(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (Result why = FindRecurrence(p, found); !why.ok()) return why;
  const Recurrence& r = *found;
  *sizes = {r.steps * r.batch, r.gates * r.hidden, r.directions * r.batch, x.dtype()};
  if (sizes->chains * r.hidden == 0) return {};
  const auto element = static_cast<int64_t>(ElementBytes(x.dtype())), computed = std::max<int64_t>(element, 4);
  int64_t bytes = 0;
  auto take = [&](int64_t n) { return Operand::Work(std::exchange(bytes, bytes + (n + 255) / 256 * 256)); };
  const int64_t chain_work = RecurrentWork(static_cast<int32_t>(r.kind), r.gates, r.hidden);
  const Operand sums = take(r.directions * sizes->rows * sizes->width * computed);
  const Operand weights = take(r.directions * r.hidden * sizes->width * element);
  const Operand work = take(sizes->chains * chain_work * computed);
  recipe.SetWorkspace(static_cast<uint64_t>(bytes));

  const Operand null = Operand::Null();
  if (sizes->rows) {
    MatMulArgs product = {};
    product.m = sizes->rows;
    product.n = sizes->width;
    product.k = r.input;
    product.batch = product.batch_dims[0] = r.directions;
    product.batch_rank = 1;
    product.a_row = product.b_column = r.input;
    product.a_k = product.b_k = 1;
    product.b_batch[0] = sizes->width * r.input;
    product.splits = 1;  // a single part, stored in the compute type
    const int64_t tiles = (product.m + 63) / 64 * ((product.n + 63) / 64) * product.batch;
    Shape3 shape = Rows(tiles);
    if (variant == kMatrixUnits) shape.block[0] = 128;
    recipe.Add(KernelFor(variant == kMatrixUnits ? "matmul_part_mma64" : "matmul_part", x.dtype()), shape, product,
               {Operand::In(r.x), Operand::In(r.w), null, null, null, sums});
  }
  const TransposeArgs transpose = {nullptr, nullptr, r.directions, sizes->width, r.hidden};
  const int64_t tiles = transpose.batch * ((transpose.rows + 31) / 32) * ((transpose.columns + 31) / 32);
  recipe.Add("transpose_" + std::to_string(element), Rows(tiles), transpose, {Operand::In(r.r), weights});

  RecurrentArgs args = {};
  args.steps = r.steps;
  args.batch = r.batch;
  args.hidden = r.hidden;
  args.gates = r.gates;
  args.directions = r.directions;
  args.chain_work = chain_work;
  args.kind = static_cast<int32_t>(r.kind);
  args.batch_first = r.batch_first;
  args.reverse = r.reverse;
  args.input_forget = r.input_forget;
  args.linear_before_reset = r.linear_before_reset;
  args.clip = r.clip;
  std::copy_n(&r.f[0][0], 6, &args.f[0][0]);
  auto in = [&](int operand) { return Operand::MaybeIn(operand); };
  auto out = [&](int operand) { return operand < 0 ? null : Operand::Out(operand); };
  recipe.Add(KernelFor("recurrent", x.dtype()), Rows(sizes->chains), args,
             {sums, weights, in(r.b), in(r.lengths), in(r.h), in(r.c), in(r.p), out(r.y), out(r.y_h), out(r.y_c), work,
              Operand::Faults()});
  return {};
}

struct RecurrentRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    Recurrence r;
    Sizes sizes;
    if (Result why = Build(p, kPlain, recipe, &r, &sizes); !why.ok()) return offers.Refuse(why.text());
    // A block reads all recurrent weights of its direction in every step.
    constexpr double kBlockBytesPerUs = 1e5;
    const double weights = static_cast<double>(sizes.width * r.hidden) * static_cast<double>(ElementBytes(sizes.type));
    const double waves = std::max(1.0, static_cast<double>(sizes.chains) / RoofsOf(p.handle()).multiprocessors);
    const double product = 2.0 * static_cast<double>(sizes.rows * r.directions * r.input) * static_cast<double>(sizes.width);
    const double steps_us = waves * static_cast<double>(r.steps) * (2 + weights / kBlockBytesPerUs);
    offers.Add({.id = "gpu.recurrent",
                .attributes = kExact,
                .workspace = recipe.workspace(),
                .cost_us = GpuUs(p, 2 * BytesOf(p), product, 3) + steps_us,
                .variant = kPlain});
    if (product == 0 || !HasMatrixUnits(p, sizes.type)) return;
    offers.Add({.id = sizes.type == MGE_DTYPE_F32 ? "gpu.recurrent.tf32" : "gpu.recurrent.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(sizes.type),
                .workspace = recipe.workspace(),
                .cost_us = GpuUs(p, 2 * BytesOf(p), product / MatrixUnitsGain(p, sizes.type), 3) + steps_us,
                .variant = kMatrixUnits});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Recipe recipe;
    Recurrence r;
    Sizes sizes;
    return Build(p, c.variant, recipe, &r, &sizes).ok() ? std::move(recipe).Make() : nullptr;
  }
};

constexpr KernelRow kRows[] = {Row<RecurrentRow>("RNN"), Row<RecurrentRow>("GRU"), Row<RecurrentRow>("LSTM")};

}  // namespace

MGE_KERNELS(recurrent) = kRows;

}  // namespace mge::gpu
