// SPDX-License-Identifier: Apache-2.0
// Conv over one to three spatial axes, alone or with an epilogue.
#include "plugins/gpu/kernels/conv.h"

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/moves.h"
#include "plugins/gpu/support/window.h"

namespace mge::gpu {
namespace {

enum Kind : uint32_t { kProduct = 0, kDirect = 1 };

struct Convolution {
  ConvArgs args = {};
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int x = -1, w = -1, bias = -1, residual = -1;  // operand numbers

  int64_t taps() const { return args.axis[0].kernel * args.axis[1].kernel * args.axis[2].kernel; }
  int64_t pixels() const { return args.axis[0].out * args.axis[1].out * args.axis[2].out; }
  int64_t depth() const { return args.channels / args.groups * taps(); }
  int64_t tiles() const {
    return (pixels() + 63) / 64 * ((args.outputs / args.groups + 63) / 64) * args.images * args.groups;
  }
};

Result Find(const Problem& p, Convolution* out) {
  Node n = p.node();
  Value x = n.input(0), w = n.input(1), y = n.output(0);
  out->type = x.dtype();
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (w.dtype() != x.dtype() || (n.has_input(2) && n.input(2).dtype() != x.dtype()))
    return Refusal("operands of different types");
  if (w.rank() != x.rank()) return Refusal("the filter's rank is not the input's");
  if (Result r = ReadWindow(n, w.dims().subspan(2), out->args.axis); !r.ok()) return r;
  // An image without pixels can still have padding, so only empty outputs and filters are refused.
  if (y.elements() == 0 || w.elements() == 0) return Refusal("an operand is empty");
  ConvArgs& a = out->args;
  a.images = x.dim(0);
  a.channels = x.dim(1);
  a.outputs = w.dim(0);
  a.groups = n.Int("group", 1);
  if (a.groups < 1 || a.channels != a.groups * w.dim(1) || a.outputs % a.groups)
    return Refusal("the groups do not divide the channels");
  Epilogue e;
  if (!FindEpilogue(p, ChannelAxis::kSecond, &e)) return Refusal("unsupported epilogue");
  out->x = InputOf(p, 0);
  out->w = InputOf(p, 1);
  out->bias = p.operand(e.bias);
  out->residual = p.operand(e.residual);
  a.activation = e.activation;
  return {};
}

struct ConvRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    Convolution conv;
    if (Result r = Find(p, &conv); !r.ok()) return offers.Refuse(r.text());
    const ConvArgs& a = conv.args;
    double flops = 2.0 * static_cast<double>(a.images * a.outputs * conv.pixels()) * static_cast<double>(conv.depth());
    std::vector<mge_in_place> in_place;
    if (conv.residual >= 0 && conv.residual != conv.x && conv.residual != conv.w && conv.residual != conv.bias) {
      in_place.push_back({0, static_cast<uint32_t>(conv.residual)});
    }
    offers.Add({.id = "gpu.conv.direct",
                .rank = 1,
                .attributes = kExact,
                .cost_us = GpuUs(BytesOf(p), 12 * flops),
                .variant = kDirect,
                .in_place = in_place});
    const WindowAxis& depth = a.axis[0];
    if (depth.in != 1 || depth.kernel != 1 || depth.out != 1 || depth.pad_begin != 0) return;
    // Tiles are padded with zeros if a group has few outputs or a short sum.
    double filled = static_cast<double>(conv.tiles() * 64 * 64) * static_cast<double>((conv.depth() + 15) / 16 * 16) * 2.0;
    offers.Add({.id = "gpu.conv.product",
                .attributes = kExact,
                .cost_us = GpuUs(BytesOf(p), filled),
                .variant = kProduct,
                .in_place = in_place});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Convolution conv;
    if (!Find(p, &conv).ok()) return nullptr;
    Recipe recipe;
    bool direct = c.variant == kDirect;
    ConvArgs& a = conv.args;
    bool one_use = conv.w != conv.x && conv.w != conv.bias && conv.w != conv.residual;
    if (!direct && one_use && p.input(conv.w).is_constant()) {
      a.packed = recipe.Transpose(conv.w, a.groups, a.outputs / a.groups, conv.depth(), ElementBytes(conv.type));
    }
    recipe.Add(KernelFor(direct ? "conv_direct" : "conv_product", conv.type),
               direct ? Spread(conv.args.images * conv.args.outputs * conv.pixels()) : Rows(conv.tiles()), conv.args,
               {Operand::In(conv.x), Operand::In(conv.w), Operand::MaybeIn(conv.bias), Operand::MaybeIn(conv.residual),
                Operand::Out()});
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<ConvRow>("Conv")};

}  // namespace

MGE_KERNELS(conv) = kRows;

}  // namespace mge::gpu
