// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/ops/families/pool.h"

namespace mge::op_max_unpool {
namespace {

struct Geometry {
  Shape pooled;  // the input shape of the pooling, computed from kernel, strides and pads; indices refer to it
  Shape output;  // equal to `pooled`, or the larger shape given by input output_shape
};

// Resolves the shapes. `wanted` is the value of input output_shape, or empty if absent.
absl::StatusOr<Geometry> Resolve(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> indices,
                                 std::span<const int64_t> wanted) {
  if (x.size() < 3) {
    return Fail(errors::kInvalidNode, fmt::format("the input has shape {}; its rank must be at least 3", ShapeText(x)));
  }
  MGE_RETURN_IF_ERROR(RequireShape("the tensor of indices", indices, x));
  MGE_ASSIGN_OR_RETURN(Ints kernel, KernelShape(attrs, x.size() - 2));
  MGE_ASSIGN_OR_RETURN(Window window, ResolveTransposedWindow(attrs, x.subspan(2), kernel));
  Geometry g;
  g.pooled = {x[0], x[1]};
  for (const WindowAxis& axis : window) g.pooled.push_back(axis.in);
  g.output = g.pooled;
  if (wanted.empty()) return g;
  MGE_RETURN_IF_ERROR(RequireSize("the number of values in output_shape", static_cast<int64_t>(wanted.size()),
                                  static_cast<int64_t>(x.size())));
  g.output.assign(wanted.begin(), wanted.end());
  for (size_t i = 0; i < x.size(); ++i) {
    if (g.pooled[i] == kUnknownDim) continue;
    if (i < 2 ? g.output[i] != g.pooled[i] : g.output[i] < g.pooled[i]) {
      return Fail(errors::kInvalidNode, fmt::format("output_shape {} is smaller than the unpooled shape {}",
                                                    ShapeText(wanted), ShapeText(g.pooled)));
    }
  }
  return g;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank || !ctx.input(1).has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  std::vector<int64_t> wanted;
  bool unknown_shape = false;
  if (ctx.has_input(2)) {
    const Tensor* shape = ctx.constant(2);
    unknown_shape = !shape;
    if (shape) wanted = shape->ToInts();
  }
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.attrs(), x.dims, ctx.input(1).dims, wanted));
  if (unknown_shape) std::fill(g.output.begin() + 2, g.output.end(), kUnknownDim);
  ctx.SetOutput(0, MakeType(x.dtype, g.output));
  return absl::OkStatus();
}

// Returns the offset in `output` of the element at offset `flat` in `pooled`.
int64_t Relocate(const Geometry& g, int64_t flat) {
  int64_t offset = 0, stride = 1;
  for (size_t d = g.pooled.size(); d-- > 0;) {
    offset += flat % g.pooled[d] * stride;
    flat /= g.pooled[d];
    stride *= g.output[d];
  }
  return offset;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> wanted;
  if (ctx.has_input(2)) wanted = ctx.input(2).ToInts();
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.attrs(), x.shape(), ctx.input(1).shape(), wanted));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.output));
  if (y->elements() == 0) return absl::OkStatus();
  std::memset(y->mutable_data(), 0, static_cast<size_t>(y->bytes()));
  std::span<const int64_t> indices = ctx.input(1).Data<int64_t>();
  const int64_t size = Elements(g.pooled);
  for (int64_t index : indices) {
    if (index < 0 || index >= size) {
      return Fail(errors::kIndexOutOfRange,
                  fmt::format("index {} is outside of the {} elements of shape {}", index, size, ShapeText(g.pooled)));
    }
  }
  bool known = DispatchBytes(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const T> in = x.Data<T>();
    std::span<T> out = y->MutableData<T>();
    for (size_t i = 0; i < in.size(); ++i) out[Relocate(g, indices[i])] = in[i];
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(max_unpool) = {
    .name = "MaxUnpool",
    .doc = "Restores the maxima of a MaxPool at their original positions. All other elements are zero.",
    .inputs = {{"X", kFloating}, {"I", {DType::kI64}}, {"output_shape", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {kWindowShapeAttr, kPadsAttr, kStridesAttr},
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeAnyWindow<>,
    .since = 9,
    .examples = {"(T[1,1,2,2], int64[1,1,2,2]<5,7,13,15>) {kernel_shape=[2,2], strides=[2,2]}"},
};

}  // namespace mge::op_max_unpool
