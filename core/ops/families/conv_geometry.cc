// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"

#include <algorithm>

#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Checks ranks, group and kernel_shape for both directions of a convolution. Returns the spatial sizes of the weights.
absl::StatusOr<Shape> KernelSizes(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> w) {
  if (x.size() < 3 || w.size() != x.size()) {
    return BadNode(
        fmt::format("input shape {} and weight shape {} must have the same rank, at least 3", ShapeText(x), ShapeText(w)));
  }
  int64_t group = attrs.Int("group");
  if (group < 1) return BadNode(fmt::format("attribute group = {} must be at least 1", group));
  Shape kernel(w.begin() + 2, w.end());
  if (!attrs.IntList("kernel_shape").empty()) {
    MGE_ASSIGN_OR_RETURN(Ints wanted, KernelShape(attrs, kernel.size()));
    MGE_RETURN_IF_ERROR(RequireShape("the spatial part of the weights", kernel, wanted));
    kernel.assign(wanted.begin(), wanted.end());
  }
  return kernel;
}

int64_t Divide(int64_t size, int64_t by) { return size == kUnknownDim ? kUnknownDim : size / by; }

}  // namespace

Shape ConvGeometry::OutputShape() const {
  Shape shape = {batch, out_channels};
  for (const WindowAxis& axis : window) shape.push_back(axis.out);
  return shape;
}

absl::StatusOr<ConvGeometry> ResolveConv(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> w) {
  MGE_ASSIGN_OR_RETURN(Shape kernel, KernelSizes(attrs, x, w));
  ConvGeometry g{.batch = x[0], .group = attrs.Int("group"), .in_channels = w[1], .out_channels = w[0], .window = {}};
  if (g.in_channels == kUnknownDim) g.in_channels = Divide(x[1], g.group);
  if (x[1] != kUnknownDim && (x[1] % g.group != 0 || x[1] / g.group != g.in_channels)) {
    return BadNode(fmt::format("the input has {} channels, but weights {} with group = {} require {} per group", x[1],
                               ShapeText(w), g.group, g.in_channels));
  }
  if (g.out_channels != kUnknownDim && g.out_channels % g.group != 0) {
    return BadNode(fmt::format("{} output channels cannot be divided into {} groups", g.out_channels, g.group));
  }
  MGE_ASSIGN_OR_RETURN(g.window, ResolveWindow(attrs, x.subspan(2), kernel));
  return g;
}

absl::StatusOr<ConvGeometry> ResolveConvTranspose(const Attributes& attrs, std::span<const int64_t> x,
                                                  std::span<const int64_t> w) {
  MGE_ASSIGN_OR_RETURN(Shape kernel, KernelSizes(attrs, x, w));
  ConvGeometry g{.batch = x[0], .group = attrs.Int("group"), .in_channels = 0, .out_channels = kUnknownDim, .window = {}};
  MGE_RETURN_IF_ERROR(RequireSize("the first dimension of the weights (input channels)", w[0], x[1]));
  int64_t channels = x[1] == kUnknownDim ? w[0] : x[1];
  if (channels != kUnknownDim && channels % g.group != 0) {
    return BadNode(fmt::format("{} input channels cannot be divided into {} groups", channels, g.group));
  }
  g.in_channels = Divide(channels, g.group);
  if (w[1] != kUnknownDim && !CheckedMul(w[1], g.group, &g.out_channels)) {
    return BadNode(fmt::format("{} output channels in {} groups are too many", w[1], g.group));
  }
  MGE_ASSIGN_OR_RETURN(g.window, ResolveTransposedWindow(attrs, x.subspan(2), kernel));
  return g;
}

void AddKernelShape(Attributes& attrs, const TensorType& weights) {
  if (!attrs.IntList("kernel_shape").empty() || !weights.has_rank || weights.dims.size() < 3) return;
  const Ints sizes(weights.dims.begin() + 2, weights.dims.end());
  if (std::ranges::count(sizes, kUnknownDim) == 0) attrs.SetImplied("kernel_shape", sizes);
}

absl::Status NormalizeConv(InferContext& ctx, Attributes& attrs, int x, int w) {
  const TensorType& xt = ctx.input(x);
  const TensorType& wt = ctx.input(w);
  if (!xt.has_rank || !wt.has_rank) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConv(attrs, xt.dims, wt.dims));
  AddKernelShape(attrs, wt);
  NormalizeWindow(attrs, *ctx.node().def, g.window);
  return absl::OkStatus();
}

absl::Status InferConv(InferContext& ctx, int x, int w, DType result) {
  const TensorType& xt = ctx.input(x);
  const TensorType& wt = ctx.input(w);
  if (!xt.has_rank || !wt.has_rank) {
    ctx.SetOutput(0, UnrankedType(result));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConv(ctx.attrs(), xt.dims, wt.dims));
  ctx.SetOutput(0, MakeType(result, g.OutputShape()));
  return absl::OkStatus();
}

Window FlattenPointwise(const Window& window) {
  if (!IsPointwise(window)) return window;
  const int64_t size = Elements(WindowInputs(window));
  return {WindowAxis{.in = size, .out = size}};
}

}  // namespace mge
