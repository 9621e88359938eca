// SPDX-License-Identifier: Apache-2.0
// ConvTranspose over one to three spatial axes.
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result Build(const Problem& p, Recipe& recipe) {
  Convolution conv;
  if (Result r = FindTransposed(p, &conv); !r.ok()) return r;
  recipe.Add(KernelFor("conv_transposed", conv.type), Spread(static_cast<int64_t>(p.node().output(0).elements())), conv.args,
             {Operand::In(conv.x), Operand::In(conv.w), Operand::MaybeIn(conv.bias), Operand::Null(), Operand::Out()});
  return {};
}

struct ConvTransposeRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    Value w = p.node().input(1);
    double flops = 2.0 * static_cast<double>(p.node().input(0).elements()) * static_cast<double>(w.elements()) /
                   static_cast<double>(w.dim(0));
    offers.Add({.id = "gpu.conv_transpose", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), 12 * flops)});
  }
};

constexpr KernelRow kRows[] = {Row<ConvTransposeRow>("ConvTranspose")};

}  // namespace

MGE_KERNELS(conv_transpose) = kRows;

}  // namespace mge::gpu
