// SPDX-License-Identifier: Apache-2.0
// Helpers of the pooling operators: shapes, and a loop over all windows of a plane.
#pragma once

#include <cmath>
#include <vector>

#include "core/ops/families/window.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// The attributes of MaxPool.
inline constexpr AttrList kMaxPoolAttrs = {kAutoPadAttr,   kCeilModeAttr,
                                           kDilationsAttr, kWindowShapeAttr,
                                           kPadsAttr,      {"storage_order", 0, "1: the indices count column by column"},
                                           kStridesAttr};

// The sizes of a pooling of X [batch, channels, in...] to [batch, channels, out...].
struct PoolGeometry {
  int64_t planes = 0;  // batch * channels; 0 if unknown
  Shape output;
  Window window;
};

// Reads kernel_shape and the window attributes. Fails with kInvalidNode if a pad is as large as the window: a window
// must not lie in padding alone.
absl::StatusOr<PoolGeometry> ResolvePool(const Attributes& attrs, std::span<const int64_t> x);

// Sets every present output to the pooled shape. Output 0 has X's element type, output 1 is int64.
absl::Status InferPool(InferContext& ctx);

// Completes the attributes of the pooling of input kX.
template <int kX = 0>
absl::Status NormalizePool(InferContext& ctx, Attributes& attrs) {
  if (!ctx.input(kX).has_rank) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const PoolGeometry g, ResolvePool(attrs, ctx.input(kX).dims));
  NormalizeWindow(attrs, *ctx.node().def, g.window);
  return absl::OkStatus();
}

// Sets output 0 to [batch, channels, 1...], the shape of a global pool. Fails if the spatial part of the input is
// empty.
absl::Status InferGlobalPool(InferContext& ctx);

// Calls visit(output, offsets) for all outputs of one plane in order. `offsets` are the plane offsets of the taps that
// read the input, in row-major order.
template <typename Visit>
void ForEachWindow(const Window& window, Visit visit) {
  const WindowAxis& last = window.back();
  Shape outer = WindowOutputs(window);
  outer.pop_back();
  Shape index(outer.size(), 0);
  std::vector<TapRow> rows;
  std::vector<int64_t> offsets;
  int64_t output = 0;
  do {
    CollectTapRows(window, index, rows);
    for (int64_t o = 0; o < last.out; ++o) {
      const IndexRange taps = last.TapsInside(o);
      offsets.clear();
      for (const TapRow& row : rows) {
        for (int64_t k = taps.begin; k < taps.end; ++k) offsets.push_back(row.input + last.Position(o, k));
      }
      visit(output++, std::span<const int64_t>(offsets));
    }
  } while (NextIndex(outer, std::span<int64_t>(index.data(), index.size())) && !index.empty());
}

// Evaluates a global pool: y = reduce(elements of one plane). `reduce` takes a span and returns a double.
template <typename Reduce>
absl::Status EvalGlobalPool(EvalContext& ctx, Reduce reduce) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2) return RequireRank("the input", x.shape(), 2);
  Shape shape(x.rank(), 1);
  shape[0] = x.shape()[0];
  shape[1] = x.shape()[1];
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  if (y->elements() == 0) return absl::OkStatus();
  const size_t size = static_cast<size_t>(x.elements() / y->elements());
  if (size == 0) return ctx.Invalid("there is nothing to pool in an input of shape " + ShapeText(x.shape()));
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const T> in = x.Data<T>();
    std::span<T> out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<T>(static_cast<Compute<T>>(reduce(in.subspan(i * size, size))));
    }
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Returns the exponent of an Lp pool: attribute p. Fails if it is not positive.
absl::StatusOr<int64_t> ReadNorm(const Attributes& attrs);

// Converts attribute p from float to integer; it was a float before operator set 2.
absl::Status UpgradeNorm(Node& node);

}  // namespace mge
