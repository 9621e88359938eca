// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"

#include "core/ops/op_helpers.h"

namespace mge {
namespace {}  // namespace

absl::StatusOr<PoolGeometry> ResolvePool(const Attributes& attrs, std::span<const int64_t> x) {
  if (x.size() < 3) {
    return BadNode(fmt::format("the input has shape {}; its rank must be at least 3", ShapeText(x)));
  }
  std::span<const int64_t> in = x.subspan(2);
  MGE_ASSIGN_OR_RETURN(Ints kernel, KernelShape(attrs, in.size()));
  PoolGeometry g;
  MGE_ASSIGN_OR_RETURN(g.window, ResolveWindow(attrs, in, kernel));
  for (size_t i = 0; i < in.size(); ++i) {
    const WindowAxis& axis = g.window[i];
    if (axis.in == 0) {
      return BadNode(fmt::format("there is nothing to pool in an input of shape {}", ShapeText(x)));
    }
    if (std::max(axis.pad_begin, axis.pad_end) >= axis.Extent()) {
      return BadNode(fmt::format("pads [{},{}] of spatial axis {} must be smaller than the window, which spans {}",
                                 axis.pad_begin, axis.pad_end, i, axis.Extent()));
    }
  }
  g.output = {x[0], x[1]};
  for (const WindowAxis& axis : g.window) g.output.push_back(axis.out);
  if (x[0] > 0 && x[1] > 0 && !CheckedMul(x[0], x[1], &g.planes)) {
    return BadNode(fmt::format("{} x {} planes are too many", x[0], x[1]));
  }
  return g;
}

absl::Status InferPool(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  TensorType y = UnrankedType(x.dtype), indices = UnrankedType(DType::kI64);
  if (x.has_rank) {
    MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), x.dims));
    y = MakeType(x.dtype, g.output);
    indices = MakeType(DType::kI64, g.output);
  }
  ctx.SetOutput(0, std::move(y));
  ctx.SetOutput(1, std::move(indices));
  return absl::OkStatus();
}

absl::Status InferGlobalPool(InferContext& ctx) {
  TensorType y = ctx.input(0);
  y.symbols.clear();
  if (y.has_rank) {
    if (y.dims.size() < 2) return RequireRank("the input", y.dims, 2);
    for (size_t i = 2; i < y.dims.size(); ++i) {
      if (y.dims[i] == 0 && y.dims[0] > 0 && y.dims[1] > 0) {
        return BadNode(fmt::format("there is nothing to pool in an input of shape {}", ShapeText(y.dims)));
      }
      y.dims[i] = 1;
    }
  }
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadNorm(const Attributes& attrs) {
  int64_t p = attrs.Int("p");
  if (p >= 1) return p;
  return BadNode(fmt::format("attribute p = {} must be at least 1", p));
}

absl::Status UpgradeNorm(Node& node) {
  const AttributeValue* value = node.attrs.Find("p");
  const float* p = value ? std::get_if<float>(value) : nullptr;
  if (!p) return absl::OkStatus();
  if (*p >= 1 && *p < 1e6f && *p == std::floor(*p)) {
    node.attrs.Set("p", static_cast<int64_t>(*p));
    return absl::OkStatus();
  }
  return Fail(errors::kUnsupportedFeature, fmt::format("attribute p = {} is not a whole number from 1 to 1000000", *p));
}

}  // namespace mge
