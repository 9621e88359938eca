// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/convolution.h"

#include <algorithm>
#include <cstdlib>

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

bool FitsNhwc(const Problem& p, const Convolution& conv) {
  const ConvArgs& args = conv.args;
  if (conv.w == conv.x || conv.w == conv.residual || p.input(conv.x).is_constant()) return false;
  if (conv.residual >= 0 && p.input(conv.residual).is_constant()) return false;
  constexpr int64_t kMax = int64_t{1} << 28;
  // Each factor is checked first, so that no product overflows.
  const auto fits = [](std::initializer_list<int64_t> factors) {
    int64_t product = 1;
    for (const int64_t f : factors) {
      if (f < 0 || f > kMax || (product *= std::max<int64_t>(f, 1)) > 8 * kMax - 256) return false;  // less by a tile
    }
    return true;
  };
  for (const WindowAxis& a : args.axis) {
    if (!fits({a.kernel, a.dilation}) || a.kernel * a.dilation > kMax) return false;
    if (!fits({a.out, a.stride}) || a.out * a.stride > kMax || std::abs(a.pad_begin) > kMax) return false;
  }
  const WindowAxis *d = &args.axis[0], *h = &args.axis[1], *w = &args.axis[2];
  return fits({args.images, args.channels, d->in, h->in, w->in}) &&
         fits({args.images, args.outputs, d->out, h->out, w->out}) &&
         fits({args.outputs, args.channels / args.groups, d->kernel, h->kernel, w->kernel});
}

Result FindSizes(const Node& n, const Value& x, const Value& w, const Value& y, Convolution* out) {
  out->type = x.dtype();
  ConvSizes sizes;
  if (Result r = ReadConv(n, x, w, y, &sizes, out->args.axis); !r.ok()) return Refusal(r.text());
  out->SetSizes(sizes);
  return {};
}

Result FindConvolution(const Problem& p, Convolution* out) {
  Node n = p.node();
  Value x = n.input(0), w = n.input(1);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (w.dtype() != x.dtype() || (n.has_input(2) && n.input(2).dtype() != x.dtype()))
    return Refusal("operands of different types");
  if (Result r = FindSizes(n, x, w, n.output(0), out); !r.ok()) return r;
  Epilogue e;
  if (!FindEpilogue(p, ChannelAxis::kSecond, &e)) return Refusal("unsupported epilogue");
  out->x = InputOf(p, 0);
  out->w = InputOf(p, 1);
  out->bias = p.operand(e.bias);
  out->residual = p.operand(e.residual);
  out->args.activation = e.activation;
  return {};
}

Result FindWeightGradient(const Problem& p, Convolution* out) {
  const Node n = p.node();
  const Value x = n.input(0), y = n.input(1), w = n.output(0);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (w.dtype() != x.dtype() || y.dtype() != x.dtype()) return Refusal("operands of different types");
  if (Result r = FindSizes(n, x, w, y, out); !r.ok()) return r;
  out->x = InputOf(p, 0);
  out->y = InputOf(p, 1);
  return {};
}

Result FindTransposed(const Problem& p, Convolution* out) {
  Node n = p.node();
  Value x = n.input(0), w = n.input(1);
  if (!IsFloating(x.dtype())) return Refusal("only floating types");
  if (w.dtype() != x.dtype() || (n.has_input(2) && n.input(2).dtype() != x.dtype()))
    return Refusal("operands of different types");
  ConvSizes sizes;
  if (Result r = ReadConvTranspose(n, &sizes, out->args.axis); !r.ok()) return Refusal(r.text());
  out->SetSizes(sizes);
  out->type = x.dtype();
  out->x = InputOf(p, 0);
  out->w = InputOf(p, 1);
  if (n.has_input(2)) out->bias = InputOf(p, 2);
  return {};
}

}  // namespace mge::gpu
