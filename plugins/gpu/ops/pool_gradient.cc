// SPDX-License-Identifier: Apache-2.0
// mge.MaxPoolGradient over one to three spatial axes.
#include "plugins/gpu/kernels/pool_gradient.h"

#include "mge/plugin/problems/window.hpp"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result Build(const Problem& p, Recipe& recipe) {
  const Node n = p.node();
  const Value dy = n.input(0), dx = n.output(0);
  PoolGradientArgs args = {};
  if (Result r = ReadWindow(n, dx, dy, n.Ints("kernel_shape"), args.axis); !r.ok()) return r;
  const std::string kernel = KernelFor("max_pool_gradient", dx.dtype());
  if (dy.dtype() != dx.dtype() || FindKernel(kernel) == kNoKernel)
    return Refusal("does not take " + std::string(TypeName(dx.dtype())));
  args.n = static_cast<int64_t>(dx.elements());
  if (args.n == 0) return {};
  recipe.Add(kernel, Spread(args.n), args, {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 1)), Operand::Out()});
  return {};
}

struct PoolGradientRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    OfferEach(p, offers, [&](Layout, int launches) {
      return Candidate{.id = "gpu.pool_gradient", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), 0, launches)};
    });
  }
};

constexpr KernelRow kRows[] = {Row<PoolGradientRow>("MaxPoolGradient", "mge")};

}  // namespace

MGE_KERNELS(pool_gradient) = kRows;

}  // namespace mge::gpu
