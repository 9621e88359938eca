// SPDX-License-Identifier: Apache-2.0
// Attention, a group that begins with a transpose, a scale or the product of queries and keys.
#include "plugins/gpu/support/attention.h"

#include <algorithm>

#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kPlain = 0, kMatrixUnits = 1 };

// Returns the number of blocks, which compute `queries` queries each.
int64_t BlocksOf(const AttentionArgs& args, int64_t queries) { return (args.queries + queries - 1) / queries * args.batch; }

// Finds the attention that is the whole problem.
bool FindWhole(const Problem& p, Attention* found) {
  for (int i = 0; i < p.node_count(); ++i) {
    if (!p.node(i).Is("Softmax")) continue;
    return FindAttention(p.graph(), i, found) && static_cast<int>(found->nodes.size()) == p.node_count() &&
           p.output_count() == 1 && p.graph().raw()->outputs[0] == found->output;
  }
  return false;
}

struct AttentionRow {
  static void Offer(const Problem& p, Offers& offers) {
    Attention found;
    if (p.node_count() < 3 || !FindWhole(p, &found) || !Accept(p, offers, /*groups=*/true)) return;
    const AttentionArgs& a = found.args;
    const double products = 2.0 * static_cast<double>(a.batch * a.queries) * static_cast<double>(a.keys);
    const double operations = products * (a.head_size + a.value_size) / (a.causal ? 2 : 1);
    offers.Add(
        {.id = "gpu.attention", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), operations), .variant = kPlain});
    if (!HasMatrixUnits(p, found.type)) return;
    offers.Add({.id = found.type == MGE_DTYPE_F32 ? "gpu.attention.tf32" : "gpu.attention.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(found.type),
                .cost_us = GpuUs(p, BytesOf(p), operations / MatrixUnitsGain(p, found.type)),
                .variant = kMatrixUnits});
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Attention found;
    if (!FindWhole(p, &found)) return nullptr;
    const AttentionArgs& a = found.args;
    std::string kernel = "attention";
    Shape3 shape = Rows(BlocksOf(a, 32));
    if (c.variant == kMatrixUnits) {
      kernel += std::max(a.head_size, a.value_size) > 64 ? "_mma128" : "_mma64";
      shape = Rows(BlocksOf(a, 64));
      shape.block[0] = 128;
    }
    Recipe recipe;
    recipe.Add(KernelFor(kernel, found.type), shape, a,
               {Operand::In(p.operand(found.q)), Operand::In(p.operand(found.k)), Operand::In(p.operand(found.v)),
                found.mask < 0 ? Operand::Null() : Operand::In(p.operand(found.mask)), Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<AttentionRow>("MatMul"), Row<AttentionRow>("Transpose"), Row<AttentionRow>("Mul"),
                               Row<AttentionRow>("Div")};

}  // namespace

MGE_KERNELS(attention) = kRows;

}  // namespace mge::gpu
