// SPDX-License-Identifier: Apache-2.0
// Conv over one to three spatial axes, alone or with an epilogue.
#include "plugins/gpu/support/convolution.h"
#include "plugins/gpu/support/matrix_units.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kProduct = 0, kDirect = 1, kMatrixUnits = 2 };

struct ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Convolution conv;
    if (Result r = FindConvolution(p, &conv); !r.ok()) return offers.Refuse(r.text());
    const ConvArgs& a = conv.args;
    double flops = 2.0 * static_cast<double>(a.images * a.outputs * conv.pixels()) * static_cast<double>(conv.depth());
    std::vector<mge_in_place> in_place;
    if (conv.residual >= 0 && conv.residual != conv.x && conv.residual != conv.w && conv.residual != conv.bias) {
      in_place.push_back({0, static_cast<uint32_t>(conv.residual)});
    }
    offers.Add({.id = "gpu.conv.direct",
                .rank = 1,
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), 12 * flops),
                .variant = kDirect,
                .in_place = in_place});
    const WindowAxis& depth = a.axis[0];
    if (depth.in != 1 || depth.kernel != 1 || depth.out != 1 || depth.pad_begin != 0) return;
    // Tiles are padded with zeros if a group has few outputs or a short sum.
    double filled = static_cast<double>(conv.tiles() * 64 * 64) * static_cast<double>((conv.depth() + 15) / 16 * 16) * 2.0;
    offers.Add({.id = "gpu.conv.product",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p), filled),
                .variant = kProduct,
                .in_place = in_place});
    if (!HasMatrixUnits(p, conv.type)) return;
    offers.Add({.id = conv.type == MGE_DTYPE_F32 ? "gpu.conv.tf32" : "gpu.conv.mma",
                .rank = -1,
                .attributes = MatrixUnitsAttributes(conv.type),
                .cost_us = GpuUs(p, BytesOf(p), filled / MatrixUnitsGain(p, conv.type)),
                .variant = kMatrixUnits,
                .in_place = in_place});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Convolution conv;
    if (!FindConvolution(p, &conv).ok()) return nullptr;
    Recipe recipe;
    const std::vector<Operand> operands = {Operand::In(conv.x), Operand::In(conv.w), Operand::MaybeIn(conv.bias),
                                           Operand::MaybeIn(conv.residual), Operand::Out()};
    if (c.variant == kMatrixUnits) {
      Shape3 shape;
      const auto tiles = [&](int64_t tile) { return conv.tiles(tile); };
      const std::string kernel = MatrixUnitsKernel("conv_mma", conv.type, tiles, &shape);
      recipe.Add(kernel, shape, conv.args, std::span<const Operand>(operands));
      return std::move(recipe).Make();
    }
    bool direct = c.variant == kDirect;
    ConvArgs& a = conv.args;
    bool one_use = conv.w != conv.x && conv.w != conv.bias && conv.w != conv.residual;
    if (!direct && one_use && p.input(conv.w).is_constant()) {
      a.packed = recipe.Transpose(conv.w, a.groups, a.outputs / a.groups, conv.depth(), ElementBytes(conv.type));
    }
    recipe.Add(KernelFor(direct ? "conv_direct" : "conv_product", conv.type),
               direct ? Spread(conv.args.images * conv.args.outputs * conv.pixels()) : Rows(conv.tiles()), conv.args,
               std::span<const Operand>(operands));
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<ConvRow>("Conv")};

}  // namespace

MGE_KERNELS(conv) = kRows;

}  // namespace mge::gpu
