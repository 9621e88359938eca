// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/ops/families/pool.h"
#include "core/ops/gradient.h"

namespace mge::op_max_pool {
namespace {

// Converts a row-major offset in a plane to the offset in column-major order.
int64_t ColumnMajor(const Window& window, int64_t offset) {
  int64_t result = 0, size = 1;
  for (const WindowAxis& axis : window) size *= axis.in;
  int64_t stride = size;
  for (size_t d = window.size(); d-- > 0;) {
    stride /= window[d].in;
    result += offset % window[d].in * stride;
    offset /= window[d].in;
  }
  return result;
}

absl::Status CheckStorageOrder(const Attributes& attrs) {
  int64_t order = attrs.Int("storage_order");
  if (order == 0 || order == 1) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("attribute storage_order = {} must be 0 or 1", order));
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckStorageOrder(ctx.attrs()));
  return InferPool(ctx);
}

template <typename T>
absl::Status Pool(EvalContext& ctx, const PoolGeometry& g, const T* x, T* y, int64_t* indices) {
  const bool column_major = ctx.attrs().Int("storage_order") == 1;
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(WindowOutputs(g.window));
  T lowest;
  if constexpr (kIsFloating<T>) {
    lowest = static_cast<T>(-std::numeric_limits<Compute<T>>::infinity());
  } else {
    lowest = std::numeric_limits<T>::lowest();
  }
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const T* in = x + plane * in_size;
    ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
      T best = lowest;
      int64_t at = offsets.empty() ? 0 : offsets[0];
      for (int64_t offset : offsets) {
        if (in[offset] > best || in[offset] != in[offset]) {  // NaN is larger than every number
          best = in[offset];
          at = offset;
        }
      }
      y[plane * out_size + output] = best;
      if (indices) {
        indices[plane * out_size + output] = plane * in_size + (column_major ? ColumnMajor(g.window, at) : at);
      }
    });
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(CheckStorageOrder(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.output));
  int64_t* indices = nullptr;
  if (ctx.has_output(1)) {
    MGE_ASSIGN_OR_RETURN(Tensor * out, ctx.Output(1, DType::kI64, g.output));
    indices = out->MutableData<int64_t>().data();
  }
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Pool<T>(ctx, g, x.Data<T>().data(), y->MutableData<T>().data(), indices);
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

absl::Status Gradient(GradientContext& g) {
  if (g.attrs().Int("storage_order") != 0) return g.Unsupported("a MaxPool with storage_order 1");
  return g.Give(0, {g, g.AddOurs("MaxPoolGradient", {g.dy().id(), g.y(1).id(), g.x().id()}, g.attrs())});
}

}  // namespace

MGE_OP(max_pool) = {
    .name = "MaxPool",
    .doc = "The largest element of every window and, optionally, its index in the flattened input.",
    .inputs = {{"X", kFloating | TypeSet{DType::kI8, DType::kU8}}},
    .outputs = {{"Y"}, {.name = "Indices", .arity = Arity::kOptional}},
    .attrs = kMaxPoolAttrs,
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizePool<>,
    .gradient = Gradient,
    .examples = {"(T[2,3,7,5]) {kernel_shape=[3,2]}", "(T[1,2,9,8]) {kernel_shape=[3,2], strides=[2,3], pads=[1,0,0,1]}",
                 "(T[1,1,4,4]) {kernel_shape=[2,2]} -> 2",
                 "(T[2,19,9,8]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]} -> 2",
                 "(T[1,3,5,4,6]) {kernel_shape=[2,2,2], dilations=[1,2,1], strides=[1,1,2]} -> 2",
                 "(T[1,2,13]) {kernel_shape=[4], ceil_mode=1, strides=[3]}"},
};

}  // namespace mge::op_max_pool
