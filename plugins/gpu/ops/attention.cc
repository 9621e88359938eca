// SPDX-License-Identifier: Apache-2.0
// Attention, a group that begins with a transpose, a scale or the product of queries and keys.
#include "plugins/gpu/support/attention.h"

#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

constexpr int64_t kQueriesPerBlock = 32;

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
    offers.Add({.id = "gpu.attention",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), products * (a.head_size + a.value_size) / (a.causal ? 2 : 1))});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Attention found;
    if (!FindWhole(p, &found)) return nullptr;
    const AttentionArgs& a = found.args;
    Recipe recipe;
    recipe.Add("attention_f32", Rows((a.queries + kQueriesPerBlock - 1) / kQueriesPerBlock * a.batch), a,
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
