// SPDX-License-Identifier: Apache-2.0
// ConvTranspose over one to three spatial axes.
#include <algorithm>

#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result Build(const Problem& p, Layout layout, Recipe& recipe) {
  Convolution conv;
  if (Result r = FindTransposed(p, &conv); !r.ok()) return r;
  if (layout == Layout::kChannelsLast && conv.w == conv.x)
    return Refusal("the filter is the input, and the channels are last");
  const bool packs = layout == Layout::kChannelsLast && p.input(conv.w).is_constant();
  conv.args.packed = packs && recipe.Pack(conv.w, conv.FilterPacking(/*transposed=*/true));
  recipe.Add(KernelFor(layout == Layout::kPlain ? "conv_transposed" : "conv_nhwc_transposed", conv.type),
             Spread(static_cast<int64_t>(p.node().output(0).elements())), conv.args,
             {Operand::In(conv.x), Operand::In(conv.w), Operand::MaybeIn(conv.bias), Operand::Null(), Operand::Out()});
  return {};
}

struct ConvTransposeRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value w = p.node().input(1);
    const double flops = 2.0 * static_cast<double>(p.node().input(0).elements()) * static_cast<double>(w.elements()) /
                         static_cast<double>(std::max<int64_t>(1, w.dim(0)));
    OfferEach(p, offers, [&](Layout, int) {
      return Candidate{.id = "gpu.conv_transpose", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), 12 * flops)};
    });
  }
};

constexpr KernelRow kRows[] = {Row<ConvTransposeRow>("ConvTranspose")};

}  // namespace

MGE_KERNELS(conv_transpose) = kRows;

}  // namespace mge::gpu
