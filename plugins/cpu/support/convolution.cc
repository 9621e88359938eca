// SPDX-License-Identifier: Apache-2.0
#include "support/convolution.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace mge::cpu {
namespace {

// The numbers of one spatial dimension.
struct Axis {
  int64_t in = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, out = 1;
  // Returns whether output i depends only on input i.
  bool pointwise() const { return kernel == 1 && stride == 1 && pad_begin == 0 && out == in; }
};

int64_t At(std::span<const int64_t> list, size_t i, int64_t fallback) { return i < list.size() ? list[i] : fallback; }

Axis FindAxis(const Node& n, const Value& x, const Value& w, const Value& y, int i) {
  auto at = static_cast<size_t>(i);
  Axis a = {
      x.dim(2 + i), w.dim(2 + i), At(n.Ints("strides"), at, 1), At(n.Ints("dilations"), at, 1), At(n.Ints("pads"), at, 0),
      y.dim(2 + i)};
  std::string_view automatic = n.Word("auto_pad", "NOTSET");
  if (automatic == "VALID") a.pad_begin = 0;
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    int64_t total = std::max<int64_t>(0, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in);
    a.pad_begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  return a;
}

}  // namespace

Result ReadConvolution(const Node& n, const Value& x, const Value& w, const Value& y, Convolution* out) {
  int spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3) return {MGE_UNIMPLEMENTED, "only one to three spatial dimensions"};
  if (w.rank() != x.rank()) return {MGE_INVALID_ARGUMENT, "the filter's rank is not the input's"};
  // An image without pixels can still have padding, so only empty outputs and filters are refused.
  if (y.elements() == 0 || w.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  out->rank = x.rank();
  out->batch = out->images = x.dim(0);
  out->channels = x.dim(1);
  out->outputs = w.dim(0);
  out->groups = n.Int("group", 1);
  if (out->groups < 1 || out->channels != out->groups * w.dim(1) || out->outputs % out->groups) {
    return {MGE_INVALID_ARGUMENT, "the groups do not divide the channels"};
  }
  Axis depth = spatial == 3 ? FindAxis(n, x, w, y, 0) : Axis();
  Axis rows = spatial >= 2 ? FindAxis(n, x, w, y, spatial - 2) : Axis();
  Axis columns = FindAxis(n, x, w, y, spatial - 1);
  if (depth.pointwise()) {  // every layer is an image
    out->images *= depth.in;
    depth = Axis();
  } else if (rows.pointwise() && columns.pointwise()) {  // layers are rows
    columns.in = columns.out = rows.in * columns.in;
    rows = std::exchange(depth, Axis());
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
