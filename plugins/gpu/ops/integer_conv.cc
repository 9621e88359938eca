// SPDX-License-Identifier: Apache-2.0
// ConvInteger and QLinearConv over one to three spatial axes, of plain tensors and with the channels last.
#include "plugins/gpu/kernels/integer_conv.h"

#include <algorithm>

#include "plugins/gpu/support/integer_convolution.h"
#include "plugins/gpu/support/layout.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kProduct, kDirect, kNhwcProduct, kNhwcDirect, kNhwcDepthwise, kNhwcMatrixUnits };
constexpr const char* kKernels[] = {"product", "direct", "nhwc_product", "nhwc_direct", "nhwc_depthwise", "nhwc_mma"};

constexpr int64_t kTile = 64;
// The operations, in the units of GpuUs(), that it takes to find and load a byte of a window, or several neighbours at once.
constexpr double kLoadOperations = 20;

// Returns the operations of a product by tiles, which loads `each` elements of a window at once. `gain`: how many times as fast
// products are as those of floats.
double OperationsOf(const Convolution& conv, int64_t tiles, int64_t each, double gain) {
  const double lines = static_cast<double>(tiles * kTile),
               depth = static_cast<double>((conv.depth() + kTile - 1) / kTile * kTile);
  return 2 * lines * kTile * depth / gain + lines * depth * kLoadOperations / static_cast<double>(each);
}

// Returns the packing of the filter for a kernel; the kernels of plain tensors read it as it is.
Packing PackingFor(const Convolution& conv, Kind kind) {
  if (kind == kNhwcProduct || kind == kNhwcMatrixUnits) return conv.FilterPacking();
  return {1, conv.args.outputs, conv.depth(), 1};
}
bool CanPack(const Problem& p, const IntegerConvolution& found) {
  const int others[] = {found.conv.x,  found.x_zero,  found.w_zero, found.x_scale,
                        found.w_scale, found.y_scale, found.y_zero, found.conv.bias};
  return p.input(found.conv.w).is_constant() && std::ranges::find(others, found.conv.w) == std::end(others);
}

struct IntegerConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    IntegerConvolution found;
    if (Result r = FindIntegerConvolution(p, &found); !r.ok()) return offers.Refuse(r.text());
    const Convolution& conv = found.conv;
    const double operations =
        2.0 * static_cast<double>(conv.args.images * conv.args.outputs * conv.pixels()) * static_cast<double>(conv.depth());
    const auto add = [&](std::string id, Kind kind, Layout layout, double work, int32_t rank, uint64_t attributes = kExact) {
      Candidate c = {.id = std::move(id),
                     .rank = rank,
                     .attributes = attributes,
                     .cost_us = GpuUs(p, BytesOf(p), work),
                     .variant = kind};
      if (SetLayout(p, layout, {conv.x}, &c)) offers.Add(c);
    };
    const double direct = 12 * operations;
    add("gpu.conv.integer.direct", kDirect, Layout::kPlain, direct, 1);
    add("gpu.conv.integer.product", kProduct, Layout::kPlain, OperationsOf(conv, conv.tiles(), 1, kGainOfBytes), 0);
    if (!FitsNhwc(p, conv)) return;
    const int64_t channels = conv.args.channels / conv.args.groups;
    if (conv.depthwise()) {
      const double each = conv.args.channels % 4 == 0 ? 4 : 1;
      const double work = operations * (1 + kLoadOperations / each);
      return add("gpu.conv.integer.depthwise", kNhwcDepthwise, Layout::kChannelsLast, work, 0);
    }
    add("gpu.conv.integer.direct", kNhwcDirect, Layout::kChannelsLast, direct, 1);
    if (PackingFor(conv, kNhwcProduct).Moves() && !CanPack(p, found)) return;
    const int64_t each = channels % 16 == 0 ? 16 : channels % 4 == 0 ? 4 : 1;
    const auto work = [&](double gain) { return OperationsOf(conv, conv.nhwc_tiles(), each, gain); };
    add("gpu.conv.integer.product", kNhwcProduct, Layout::kChannelsLast, work(kGainOfBytes), 0);
    if (!HasMatrixUnits(p, MGE_DTYPE_I8)) return;
    const double gain = MatrixUnitsGain(p, MGE_DTYPE_I8);
    add("gpu.conv.integer.mma", kNhwcMatrixUnits, Layout::kChannelsLast, work(gain), -1,
        MatrixUnitsAttributes(MGE_DTYPE_I8));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    IntegerConvolution found;
    if (!FindIntegerConvolution(p, &found).ok()) return nullptr;
    const auto kind = static_cast<Kind>(c.variant);
    const Convolution& conv = found.conv;
    IntegerConvArgs& args = found.args;
    args.shape = conv.args;
    Recipe recipe;
    if (kind != kProduct && kind != kDirect) {
      const Packing packing = PackingFor(conv, kind);
      args.shape.packed = !packing.Moves() || (CanPack(p, found) && recipe.Pack(conv.w, packing));
    }
    const int64_t outputs = conv.args.images * conv.args.outputs * conv.pixels();
    Shape3 shape = Spread(outputs);
    if (kind == kProduct) shape = Rows(conv.tiles());
    if (kind == kNhwcProduct) shape = Rows(conv.nhwc_tiles());
    if (kind == kNhwcDepthwise && conv.args.channels % 4 == 0) shape = Spread(outputs / 4);
    std::string kernel = std::string(found.quantizes() ? "qlinear_conv_" : "integer_conv_") + kKernels[kind];
    if (kind == kNhwcMatrixUnits) {
      const auto tiles = [&](int64_t tile) { return conv.nhwc_tiles(tile); };
      kernel = MatrixUnitsKernel(kernel, MGE_DTYPE_I8, tiles, &shape);
    }
    const auto in = [](int input) { return Operand::MaybeIn(input); };
    recipe.Add(kernel, shape, args,
               {in(conv.x), in(conv.w), in(found.x_zero), in(found.w_zero), in(found.x_scale), in(found.w_scale),
                in(found.y_scale), in(found.y_zero), in(conv.bias), Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<IntegerConvRow>("ConvInteger"), Row<IntegerConvRow>("QLinearConv")};

}  // namespace

MGE_KERNELS(integer_conv) = kRows;

}  // namespace mge::gpu
