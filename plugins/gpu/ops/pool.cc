// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool over one to three spatial axes.
#include "mge/plugin/problems/window.hpp"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result Build(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  PoolArgs args = {};
  if (Result r = ReadWindow(n, args.axis); !r.ok()) return r;
  if (layout == Layout::kChannelsLast && n.has_output(1)) return Refusal("no indices with the channels last");
  std::string kernel = n.op() == "MaxPool" ? "max_pool" : "average_pool";
  if (layout == Layout::kChannelsLast) kernel += "_nhwc";
  kernel = KernelFor(kernel, x.dtype());
  if (FindKernel(kernel) == kNoKernel) return Refusal("does not take " + std::string(TypeName(x.dtype())));
  args.n = static_cast<int64_t>(y.elements());
  args.channels = x.dim(1);
  constexpr uint64_t kNarrow = uint64_t{1} << 30;
  args.narrow = x.elements() < kNarrow && y.elements() < kNarrow;
  args.count_pads = n.Int("count_include_pad") != 0;
  args.column_major = n.Int("storage_order") != 0;
  if (args.n == 0) return {};
  recipe.Add(kernel, Spread(args.n), args,
             {Operand::In(InputOf(p, 0)), Operand::Out(OutputOf(p, 0)),
              n.has_output(1) ? Operand::Out(OutputOf(p, 1)) : Operand::Null()});
  return {};
}

struct PoolRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    double taps = 1;
    for (int64_t k : p.node().Ints("kernel_shape")) taps *= static_cast<double>(k);
    const double outputs = static_cast<double>(p.node().output(0).elements());
    // With the channels last, a thread computes several outputs with the same indices.
    OfferEach(p, offers, [&](Layout layout, int) {
      return Candidate{.id = "gpu.pool",
                       .attributes = kExact,
                       .cost_us = GpuUs(p, BytesOf(p), (layout == Layout::kPlain ? 8 : 4) * taps * outputs)};
    });
  }
};

constexpr KernelRow kRows[] = {Row<PoolRow>("MaxPool"), Row<PoolRow>("AveragePool")};

}  // namespace

MGE_KERNELS(pool) = kRows;

}  // namespace mge::gpu
