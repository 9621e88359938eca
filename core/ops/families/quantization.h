// SPDX-License-Identifier: Apache-2.0
// Linear quantization, real = (quantized - zero point) * scale: the scale of each element, and rounding.
#pragma once

#include <cmath>
#include <limits>

#include "core/ops/infer_checks.h"

namespace mge {

inline constexpr TypeSet kQuantized8 = {DType::kU8, DType::kI8};

// The map from elements to scales. The tensor is viewed as [outer, dim, inner]; `block` neighbours along dim share one
// scale. If the whole tensor has one scale, dim is 1.
struct QuantizationLayout {
  int64_t outer = 1;
  int64_t dim = 1;
  int64_t inner = 1;
  int64_t block = 1;
  bool per_block = false;  // scales also differ along outer and inner

  int64_t ScaleIndex(int64_t o, int64_t d, int64_t i) const {
    if (!per_block) return d;
    return (o * ((dim + block - 1) / block) + d / block) * inner + i;
  }
};

// Reads axis and block_size, and checks the shape of the scales. Sizes may be unknown; then only the check is useful.
absl::StatusOr<QuantizationLayout> ResolveQuantization(const Attributes& attrs, std::span<const int64_t> x,
                                                       std::span<const int64_t> scale);

// Checks that a zero point has the shape of its scale.
absl::Status CheckZeroPoint(std::span<const int64_t> scale, std::span<const int64_t> zero_point);

// Checks the shape of a scale or zero point: one number, or one for each of `size` indices.
absl::Status CheckPerChannel(std::string_view name, std::span<const int64_t> shape, int64_t size);

// Returns q - zero_point for 8-bit q, as uint32 modulo 2^32. The zero point may be null, one number, or one number per
// index of dimension `axis`. Sums of products of the results are correct modulo 2^32, as ONNX's int32 sums are.
absl::StatusOr<Tensor> SubtractZeroPoint(EvalContext& ctx, const Tensor& q,
                                         /*nullable*/ const Tensor* zero_point, int64_t axis);

// Returns an integral or infinite value as Q. Values out of range become the nearest limit; NaN becomes the lowest
// value.
template <typename Q>
Q Saturate(double value) {
  constexpr auto low = static_cast<double>(std::numeric_limits<Q>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<Q>::max());
  if (!(value > low)) return std::numeric_limits<Q>::min();
  return value >= high ? std::numeric_limits<Q>::max() : static_cast<Q>(value);
}

}  // namespace mge
