// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/convolution.h"

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/row.h"
#include "plugins/gpu/support/window.h"

namespace mge::gpu {

Result FindConvolution(const Problem& p, Convolution* out) {
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

}  // namespace mge::gpu
