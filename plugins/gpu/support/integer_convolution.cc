// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/integer_convolution.h"

#include "mge/plugin/problems/quantize.hpp"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

Result FindIntegerConvolution(const Problem& p, IntegerConvolution* out) {
  const Node n = p.node();
  const IntegerInputs at = IntegerInputsOf(n);
  const Value x = n.input(at.a), w = n.input(at.b);
  if (Result r = FindSizes(n, x, w, n.output(0), &out->conv); !r.ok()) return r;
  const auto number = [&](int input) { return n.has_input(input) ? InputOf(p, input) : -1; };
  const auto step = [&](int input) { return n.has_input(input) && n.input(input).elements() > 1 ? 1 : 0; };
  out->conv.x = number(at.a);
  out->conv.w = number(at.b);
  out->x_zero = number(at.a_zero);
  out->w_zero = number(at.b_zero);
  out->args.w_zero_step = step(at.b_zero);
  out->args.x_signed = x.dtype() == MGE_DTYPE_I8;
  out->args.w_signed = w.dtype() == MGE_DTYPE_I8;
  if (!at.quantizes()) return {};
  out->x_scale = number(at.a_scale);
  out->w_scale = number(at.b_scale);
  out->y_scale = number(at.y_scale);
  out->y_zero = number(at.y_zero);
  out->conv.bias = number(at.start);
  out->args.w_scale_step = step(at.b_scale);
  out->args.y_signed = n.output(0).dtype() == MGE_DTYPE_I8;
  return {};
}

}  // namespace mge::gpu
