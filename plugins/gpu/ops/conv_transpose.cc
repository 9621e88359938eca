// SPDX-License-Identifier: Apache-2.0
// ConvTranspose over one to three spatial axes.
#include <algorithm>

#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/support/moves.h"
#include "plugins/gpu/support/window.h"

namespace mge::gpu {
namespace {

Result Build(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), w = n.input(1), y = n.output(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (w.dtype() != x.dtype() || (n.has_input(2) && n.input(2).dtype() != x.dtype()))
    return Refusal("operands of different types");
  if (w.rank() != x.rank()) return Refusal("the filter's rank is not the input's");
  ConvArgs args = {};
  if (Result r = ReadWindow(n, w.dims().subspan(2), args.axis); !r.ok()) return r;
  if (y.elements() == 0 || w.elements() == 0 || x.elements() == 0) return Refusal("an operand is empty");
  args.images = x.dim(0);
  args.channels = x.dim(1);
  args.groups = n.Int("group", 1);
  args.outputs = w.dim(1) * args.groups;
  if (args.groups < 1 || args.channels % args.groups || w.dim(0) != args.channels)
    return Refusal("the groups do not divide the channels");
  // If the node specifies the output's size, the pads are derived from it.
  std::string_view automatic = n.Word("auto_pad", "NOTSET");
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  auto extra = n.Ints("output_padding");
  int axes = x.rank() - 2;
  for (int d = 0; d < axes && (same || !n.Ints("output_shape").empty()); ++d) {
    WindowAxis& a = args.axis[3 - axes + d];
    int64_t full =
        (a.in - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 + (extra.empty() ? 0 : extra[static_cast<size_t>(d)]);
    int64_t total = std::max<int64_t>(0, full - a.out);
    a.pad_begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  recipe.Add(KernelFor("conv_transposed", x.dtype()), Spread(static_cast<int64_t>(y.elements())), args,
             {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 1)),
              n.has_input(2) ? Operand::In(InputOf(p, 2)) : Operand::Null(), Operand::Null(), Operand::Out()});
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
    offers.Add({.id = "gpu.conv_transpose", .attributes = kExact, .cost_us = GpuUs(BytesOf(p), 12 * flops)});
  }
};

constexpr KernelRow kRows[] = {Row<ConvTransposeRow>("ConvTranspose")};

}  // namespace

MGE_KERNELS(conv_transpose) = kRows;

}  // namespace mge::gpu
