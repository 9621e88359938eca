// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/integer_convolution.h"

#include "plugins/gpu/support/row.h"

namespace mge::gpu {

Result FindIntegerConvolution(const Problem& p, IntegerConvolution* out) {
  const Node n = p.node();
  const bool quantizes = n.Is("QLinearConv");
  const int w_input = quantizes ? 3 : 1, x_zero_input = 2, w_zero_input = quantizes ? 5 : 3;
  const Value x = n.input(0), w = n.input(w_input);
  if (Result r = FindSizes(n, n.input(0), w, n.output(0), &out->conv); !r.ok()) return r;
  const auto number = [&](int input) { return n.has_input(input) ? InputOf(p, input) : -1; };
  const auto step = [&](int input) { return n.has_input(input) && n.input(input).elements() > 1 ? 1 : 0; };
  out->conv.x = number(0);
  out->conv.w = number(w_input);
  out->x_zero = number(x_zero_input);
  out->w_zero = number(w_zero_input);
  out->args.w_zero_step = step(w_zero_input);
  out->args.x_signed = x.dtype() == MGE_DTYPE_I8;
  out->args.w_signed = w.dtype() == MGE_DTYPE_I8;
  if (!quantizes) return {};
  out->x_scale = number(1);
  out->w_scale = number(4);
  out->y_scale = number(6);
  out->y_zero = number(7);
  out->conv.bias = number(8);
  out->args.w_scale_step = step(4);
  out->args.y_signed = n.output(0).dtype() == MGE_DTYPE_I8;
  return {};
}

}  // namespace mge::gpu
