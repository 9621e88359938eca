// SPDX-License-Identifier: Apache-2.0
// mge.ConvWeightGradient over one to three spatial axes, of plain tensors.
#include <algorithm>
#include <limits>

#include "plugins/gpu/kernels/conv_gradient.h"
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"
#include "plugins/gpu/support/tiles.h"

namespace mge::gpu {
namespace {

// A gradient as a product by tiles.
struct Work {
  Convolution conv;
  int64_t tiles = 0, splits = 1;
  int64_t sum() const { return conv.args.images * conv.pixels(); }  // terms of each sum
  uint64_t part_bytes() const { return splits > 1 ? PartBytes(conv.type, splits, conv.args.outputs * conv.depth()) : 0; }
};

Result Find(const Problem& p, Work* out) {
  if (Result r = FindWeightGradient(p, &out->conv); !r.ok()) return r;
  const ConvArgs& args = out->conv.args;
  const int64_t rows = args.outputs / args.groups, columns = out->conv.depth();
  if (rows * columns < 64) return Refusal("tiles would be nearly empty");  // a product for each tap is faster
  for (int i = 0; i < 2; ++i) {
    if (p.node().input(i).elements() > std::numeric_limits<int32_t>::max() / 2) return Refusal("too many elements");
  }
  out->tiles = (rows + kTileSize - 1) / kTileSize * ((columns + kTileSize - 1) / kTileSize) * args.groups;
  out->splits = SplitsFor(p, out->tiles, out->sum());
  return {};
}

struct WeightGradientRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Work work;
    if (Result r = Find(p, &work); !r.ok()) return offers.Refuse(r.text());
    constexpr double kLoads = 20;  // operations, in the units of GpuUs(), to find and load an element of a window
    const double products = 64.0 * static_cast<double>(work.tiles * work.sum());
    offers.Add({.id = "gpu.conv_weight_gradient",
                .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
                .workspace = work.part_bytes(),
                .cost_us = GpuUs(p, BytesOf(p) + 2.0 * static_cast<double>(work.part_bytes()), products * (2 * 64 + kLoads),
                                 work.splits > 1 ? 2 : 1) +
                           TilesUs(p, work.tiles * work.splits, work.sum() / work.splits)});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Work work;
    if (!Find(p, &work).ok()) return nullptr;
    const ConvArgs& conv = work.conv.args;
    ConvGradientArgs args = {};
    args.images = conv.images;
    args.channels = conv.channels;
    args.outputs = conv.outputs;
    args.groups = conv.groups;
    args.splits = work.splits;
    std::copy(std::begin(conv.axis), std::end(conv.axis), args.axis);
    const Operand x = Operand::In(work.conv.x), y = Operand::In(work.conv.y);
    const Shape3 shape = Rows(work.tiles * work.splits);
    Recipe recipe;
    if (work.splits == 1) {
      recipe.Add(KernelFor("conv_weight_gradient", work.conv.type), shape, args, {x, y, Operand::Out()});
      return std::move(recipe).Make();
    }
    recipe.SetWorkspace(work.part_bytes());
    recipe.Add(KernelFor("conv_weight_gradient_part", work.conv.type), shape, args, {x, y, Operand::Work()});
    const MatMulArgs join = JoinOf(conv.outputs, work.conv.depth(), work.splits);
    const Operand none = Operand::Null();
    recipe.Add(KernelFor("matmul_join", work.conv.type), Spread(join.m * join.n), join,
               {Operand::Work(), none, none, none, none, Operand::Out(), none});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<WeightGradientRow>("ConvWeightGradient", "mge")};

}  // namespace

MGE_KERNELS(conv_weight_gradient) = kRows;

}  // namespace mge::gpu
