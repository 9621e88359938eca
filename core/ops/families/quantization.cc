// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/quantization.h"

#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool IsOne(std::span<const int64_t> shape) { return shape.empty() || (shape.size() == 1 && shape[0] == 1); }

// Returns the product of the sizes modulo 2^64. A declared shape may overflow; the shape of a tensor cannot.
int64_t Product(std::span<const int64_t> sizes) {
  uint64_t product = 1;
  for (int64_t size : sizes) product *= static_cast<uint64_t>(size);
  return static_cast<int64_t>(product);
}

}  // namespace

absl::StatusOr<QuantizationLayout> ResolveQuantization(const Attributes& attrs, std::span<const int64_t> x,
                                                       std::span<const int64_t> scale) {
  QuantizationLayout layout;
  const int64_t block = attrs.Int("block_size");
  if (block < 0) return BadNode(fmt::format("attribute block_size = {} must not be negative", block));
  if (block == 0 && IsOne(scale)) {
    layout.inner = Product(x);
    return layout;
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(attrs.Int("axis"), static_cast<int64_t>(x.size())));
  layout.outer = Product(x.first(static_cast<size_t>(axis)));
  layout.dim = x[axis];
  layout.inner = Product(x.subspan(static_cast<size_t>(axis) + 1));
  if (block == 0) {
    MGE_RETURN_IF_ERROR(RequireShape("the scale (one for each index of the axis)", scale, Shape{layout.dim}));
    return layout;
  }
  layout.block = block;
  layout.per_block = true;
  Shape wanted(x.begin(), x.end());
  if (layout.dim > 0) wanted[axis] = (layout.dim - 1) / block + 1;
  MGE_RETURN_IF_ERROR(RequireShape("the scale (one for each block)", scale, wanted));
  return layout;
}

absl::Status CheckZeroPoint(std::span<const int64_t> scale, std::span<const int64_t> zero_point) {
  if (IsOne(scale) && IsOne(zero_point)) return absl::OkStatus();
  return RequireShape("the zero point", zero_point, scale);
}

absl::Status CheckPerChannel(std::string_view name, std::span<const int64_t> shape, int64_t size) {
  return IsOne(shape) ? absl::OkStatus() : RequireShape(name, shape, Shape{size});
}

absl::StatusOr<Tensor> SubtractZeroPoint(EvalContext& ctx, const Tensor& q, const Tensor* zero_point, int64_t axis) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kU32, q.shape(), ctx.allocator()));
  std::vector<int64_t> zeros = zero_point ? zero_point->ToInts() : std::vector<int64_t>{0};
  const int64_t dim = zeros.size() == 1 ? 1 : q.shape()[axis];
  MGE_RETURN_IF_ERROR(RequireSize("the number of zero points", static_cast<int64_t>(zeros.size()), dim));
  if (q.elements() == 0) return out;
  const int64_t inner =
      zeros.size() == 1 ? q.elements() : Product(std::span(q.shape()).subspan(static_cast<size_t>(axis) + 1));
  std::span<uint32_t> wide = out.MutableData<uint32_t>();
  auto subtract = [&](auto narrow) {
    for (int64_t begin = 0, d = 0; begin < q.elements(); begin += inner, d = (d + 1) % dim) {
      const uint32_t zero = static_cast<uint32_t>(zeros[d]);
      for (int64_t i = begin; i < begin + inner; ++i) wide[i] = static_cast<uint32_t>(int32_t{narrow[i]}) - zero;
    }
  };
  if (q.dtype() == DType::kU8) {
    subtract(q.Data<uint8_t>());
  } else if (q.dtype() == DType::kI8) {
    subtract(q.Data<int8_t>());
  } else {
    return ctx.Unsupported(std::string(DTypeName(q.dtype())));
  }
  return out;
}

}  // namespace mge
