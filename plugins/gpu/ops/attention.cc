// SPDX-License-Identifier: Apache-2.0
// Attention, a group that begins with a Split, a transpose, a scale or the product of queries and keys.
#include "plugins/gpu/support/attention.h"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kPlain = 0, kMatrixUnits = 1, kParts = 2 };
constexpr int64_t kFewQueries = 8;             // are computed over parts of the keys
constexpr int32_t kMaxHeadSizeOfFloats = 128;  // of the kernels for matrix units

// Returns the number of blocks, which compute `queries` queries each.
int64_t BlocksOf(const AttentionArgs& args, int64_t queries) { return (args.queries + queries - 1) / queries * args.batch; }

// Returns the number of blocks that share the columns of a query's values in a kernel for matrix units.
int64_t PartsOf(const AttentionArgs& args) { return (args.value_size + kAttentionColumns - 1) / kAttentionColumns; }

// Finds the attention that is the whole problem.
bool FindWhole(const Problem& p, Attention* found) {
  for (int i = 0; i < p.node_count(); ++i) {
    if (!p.node(i).Is("Softmax")) continue;
    return FindAttention(p.graph(), i, found) && static_cast<int>(found->nodes.size()) == p.node_count() &&
           p.output_count() == 1 && p.graph().raw()->outputs[0] == found->output;
  }
  return false;
}

// Returns an estimate of the time in which a library computes the products with matrix units, and kernels between them read
// and write the scores.
double ApartUs(const Problem& p, const Attention& a, double operations) {
  double us = operations / RoofsOf(p.handle()).matrix_operations_per_us;
  for (int32_t node : a.nodes) {
    if (!p.node(node).Is("Reshape")) us += GpuUs(p, 2.0 * static_cast<double>(p.node(node).output(0).bytes()));
  }
  return us;
}

int64_t PartsOfKeys(const AttentionArgs& args) { return (args.keys + kPartKeys - 1) / kPartKeys; }
uint64_t PartBytes(const AttentionArgs& args) {
  return static_cast<uint64_t>(args.batch * args.queries * PartsOfKeys(args) * (2 + args.value_size)) * sizeof(float);
}

struct AttentionRow {
  static void Offer(const Problem& p, Offers& offers) {
    Attention found;
    if (p.node_count() < 3 || !FindWhole(p, &found) || !Accept(p, offers, /*groups=*/true)) return;
    const AttentionArgs& a = found.args;
    const double products = 2.0 * static_cast<double>(a.batch * a.queries) * static_cast<double>(a.keys);
    const double whole = products * (a.head_size + a.value_size);
    const bool skips_tiles = a.causal.kind != kNotCausal && a.causal.enough < INFINITY;
    const double operations = skips_tiles ? whole / 2 : whole;
    const double blocks = static_cast<double>(BlocksOf(a, 32)), all = RoofsOf(p.handle()).multiprocessors;
    const double plain_us = GpuUs(p, BytesOf(p), operations * std::max(1.0, all / blocks));  // few blocks leave it idle
    const bool units = HasMatrixUnits(p, found.type) && (found.type != MGE_DTYPE_F32 || a.head_size <= kMaxHeadSizeOfFloats);
    if (!units && found.type != MGE_DTYPE_F32 && HasLibraryOfProducts(p.handle(), found.type) &&
        ApartUs(p, found, whole) < plain_us) {
      return offers.Refuse("the products of a library are faster, because attention has no kernel for matrix units here");
    }
    offers.Add({.id = "gpu.attention", .attributes = kExact, .cost_us = plain_us, .variant = kPlain});
    if (a.queries <= kFewQueries && a.keys > kPartKeys) {
      offers.Add({.id = "gpu.attention.parts",
                  .rank = -2,
                  .attributes = kExact,
                  .workspace = PartBytes(a),
                  .cost_us = GpuUs(p, BytesOf(p) + 2.0 * static_cast<double>(PartBytes(a)), whole, 2),
                  .variant = kParts});
    }
    if (!units) return;
    const double units_operations = operations + products * a.head_size * static_cast<double>(PartsOf(a) - 1);
    offers.Add({.id = found.type == MGE_DTYPE_F32 ? "gpu.attention.tf32" : "gpu.attention.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(found.type),
                .cost_us = GpuUs(p, BytesOf(p), units_operations / MatrixUnitsGain(p, found.type)),
                .variant = kMatrixUnits});
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Attention found;
    if (!FindWhole(p, &found)) return nullptr;
    const AttentionArgs& a = found.args;
    const int32_t size = std::max(a.head_size, a.value_size);
    // Large tiles of queries reuse more, if there are enough of them for the device.
    const bool many = BlocksOf(a, 64) >= 2 * static_cast<int64_t>(RoofsOf(p.handle()).multiprocessors);
    std::string kernel = size > 128  ? "attention256x16"
                         : size > 64 ? "attention128x32"
                         : many      ? "attention64x64"
                                     : "attention64x32";
    Shape3 shape = Rows(BlocksOf(a, size > 128 ? 16 : size <= 64 && many ? 64 : 32));
    if (c.variant == kMatrixUnits) {
      kernel = a.head_size > 128 ? "attention_mma256" : size > 64 ? "attention_mma128" : "attention_mma64";
      shape = Rows(BlocksOf(a, 64) * PartsOf(a));
      shape.block[0] = 128;
    }
    const auto in = [&](int32_t value, int64_t start) {
      return Operand::In(p.operand(value), start * ElementBytes(found.type));
    };
    const Operand q = in(found.q, found.q_start), k = in(found.k, found.k_start), v = in(found.v, found.v_start),
                  mask = found.mask < 0 ? Operand::Null() : Operand::In(p.operand(found.mask));
    Recipe recipe;
    if (c.variant == kParts) {
      AttentionArgs args = a;
      args.parts = PartsOfKeys(a);
      recipe.SetWorkspace(PartBytes(a));
      constexpr int64_t kWarps = kPartThreads / 32;
      Shape3 parts = Rows((a.batch * a.queries * args.parts + kWarps - 1) / kWarps);
      parts.block[0] = kPartThreads;
      const char* of_size = size > 128 ? "attention_parts256" : size > 64 ? "attention_parts128" : "attention_parts64";
      recipe.Add(KernelFor(of_size, found.type), parts, args, {q, k, v, mask, Operand::Out(), Operand::Work()});
      recipe.Add(KernelFor("attention_join", found.type), Spread(a.batch * a.queries * a.value_size), args,
                 {q, k, v, mask, Operand::Out(), Operand::Work()});
      return std::move(recipe).Make();
    }
    recipe.Add(KernelFor(kernel, found.type), shape, a, {q, k, v, mask, Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<AttentionRow>("MatMul"), Row<AttentionRow>("Transpose"), Row<AttentionRow>("Mul"),
                               Row<AttentionRow>("Div"), Row<AttentionRow>("Split")};

}  // namespace

MGE_KERNELS(attention) = kRows;

}  // namespace mge::gpu
