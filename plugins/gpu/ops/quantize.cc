// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear: one launch finds the range of the elements, another one quantizes them. QuantizeLinear and
// DequantizeLinear are elementwise operators (elementwise.cc).
#include "plugins/gpu/kernels/quantize.h"

#include <algorithm>

#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

struct DynamicQuantizeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    if (!p.node().has_output(0)) return offers.Refuse("the quantized tensor is not an output");
    // Reads x twice.
    const double bytes = BytesOf(p) + static_cast<double>(p.node().input(0).bytes());
    for (const Layout layout : LayoutsOf(p.node().input(0).rank())) {
      Candidate c = {.id = "gpu.quantize",
                     .attributes = kExact,
                     .workspace = RangeBytes(p),
                     .cost_us = GpuUs(p, bytes, 20.0 * static_cast<double>(p.output(0).elements()), 2),
                     .variant = static_cast<uint64_t>(layout)};
      if (SetLayout(p, layout, {InputOf(p, 0)}, &c)) offers.Add(c);
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    const Node n = p.node();
    DynamicQuantizeArgs args = {};
    args.n = static_cast<int64_t>(n.input(0).elements());
    args.blocks = BlocksOf(p);
    const auto out = [&](int k) { return n.has_output(k) ? Operand::Out(OutputOf(p, k)) : Operand::Null(); };
    const std::initializer_list<Operand> pointers = {Operand::In(InputOf(p, 0)), Operand::Work(), out(0), out(1), out(2)};
    Recipe recipe;
    recipe.SetWorkspace(RangeBytes(p));
    recipe.Add("quantize_ranges", Rows(args.blocks), args, pointers);
    recipe.Add("quantize_in_range", Spread(args.n / 4), args, pointers);
    return std::move(recipe).Make();
  }

 private:
  // Returns the number of blocks that find the range, each of at least 16 elements per thread.
  static int64_t BlocksOf(const Problem& p) {
    return std::clamp<int64_t>(static_cast<int64_t>(p.node().input(0).elements() / 4096), 1, 512);
  }
  static uint64_t RangeBytes(const Problem& p) { return static_cast<uint64_t>(BlocksOf(p)) * 2 * sizeof(float); }
};

constexpr KernelRow kRows[] = {Row<DynamicQuantizeRow>("DynamicQuantizeLinear")};

}  // namespace

MGE_KERNELS(quantize) = kRows;

}  // namespace mge::gpu
