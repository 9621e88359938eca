// SPDX-License-Identifier: Apache-2.0
#include "support/convolution.h"

#include <utility>

#include "mge/plugin/problems/conv.hpp"

namespace mge::cpu {
namespace {

// Returns whether output i depends only on input i.
bool IsPointwise(const WindowAxis& a) { return a.kernel == 1 && a.stride == 1 && a.pad_begin == 0 && a.out == a.in; }

}  // namespace

Result ReadConvolution(const Node& n, const Value& x, const Value& w, const Value& y, Convolution* out) {
  WindowAxis axes[3];
  ConvSizes sizes;
  if (Result r = ReadConv(n, x, w, y, &sizes, axes); !r.ok()) return r;
  out->rank = x.rank();
  out->batch = out->images = sizes.images;
  out->channels = sizes.channels;
  out->outputs = sizes.outputs;
  out->groups = sizes.groups;
  WindowAxis &depth = axes[0], &rows = axes[1], &columns = axes[2];
  if (IsPointwise(depth)) {  // every layer is an image
    out->images *= depth.in;
    depth = WindowAxis();
  } else if (IsPointwise(rows) && IsPointwise(columns)) {  // layers are rows
    columns.in = columns.out = rows.in * columns.in;
    rows = std::exchange(depth, WindowAxis());
  }
  // A column of pixels is stored like a row, and kernels are faster for rows.
  if (columns.in == 1 && columns.out == 1 && columns.kernel == 1) std::swap(rows, columns);
  out->windows = {rows.in,        columns.in,       out->channels,   w.dim(1),       rows.kernel,
                  columns.kernel, rows.stride,      columns.stride,  rows.pad_begin, columns.pad_begin,
                  rows.dilation,  columns.dilation, rows.out,        columns.out,    depth.in,
                  depth.kernel,   depth.stride,     depth.pad_begin, depth.dilation, depth.out};
  out->x_constant = x.is_constant();
  out->weights_constant = w.is_constant();
  return {};
}

Result FindConvolution(const Problem& p, int x_input, int w_input, Convolution* out) {
  const Node n = p.node();
  if (Result r = ReadConvolution(n, n.input(x_input), n.input(w_input), n.output(0), out); !r.ok()) return r;
  out->x = p.operand(0, x_input);
  out->weights = p.operand(0, w_input);
  return {};
}

Result FindConvolution(const Problem& p, Convolution* out) {
  Node n = p.node();
  if (n.input(0).dtype() != MGE_DTYPE_F32 || n.input(1).dtype() != MGE_DTYPE_F32) return {MGE_UNIMPLEMENTED, "only float32"};
  if (Result r = FindConvolution(p, 0, 1, out); !r.ok()) return r;
  if (!FindEpilogue(p, ChannelAxis::kSecond, out->epilogue)) return {MGE_UNIMPLEMENTED, "unsupported epilogue"};
  out->bias = n.has_input(2) ? p.operand(0, 2) : p.operand(out->epilogue.bias);
  out->add = p.operand(out->epilogue.add);
  for (int other : {out->x, out->bias, out->add}) {
    if (other == out->weights) return {MGE_UNIMPLEMENTED, "the filter is also another operand"};
  }
  out->weights_state = n.input(1).is_state();
  out->add_constant = out->add >= 0 && p.input(out->add).is_constant();
  return {};
}

}  // namespace mge::cpu
