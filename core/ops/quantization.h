// SPDX-License-Identifier: Apache-2.0
// Linear quantization, real = (quantized - zero point) * scale: which scale belongs to which
// element, and rounding.
#pragma once

#include <cmath>
#include <limits>

#include "core/ops/infer_checks.h"

namespace mge {

inline constexpr TypeSet kQuantized8 = {DType::kU8, DType::kI8};

// Which scale belongs to which element. The tensor is seen as [outer, dim, inner]; `block`
// neighbours along dim share a scale. One scale for the whole tensor: all is outer*inner, dim = 1.
struct QuantizationLayout {
  int64_t outer = 1;
  int64_t dim = 1;
  int64_t inner = 1;
  int64_t block = 1;
  bool per_block = false;  // scales differ along outer and inner too

  int64_t ScaleIndex(int64_t o, int64_t d, int64_t i) const {
    if (!per_block) return d;
    return (o * ((dim + block - 1) / block) + d / block) * inner + i;
  }
};

// Reads axis and block_size and checks the shape of the scales; sizes may be unknown (then only
// errors matter).
absl::StatusOr<QuantizationLayout> ResolveQuantization(const Attributes& attrs,
                                                       std::span<const int64_t> x,
                                                       std::span<const int64_t> scale);

// A zero point has its scale's shape.
absl::Status CheckZeroPoint(std::span<const int64_t> scale, std::span<const int64_t> zero_point);

// Checks the shape of a scale or a zero point that is one number or one per index of `size`.
absl::Status CheckPerChannel(std::string_view name, std::span<const int64_t> shape, int64_t size);

// q - zero_point, wrapped to 32 bits, for 8-bit q. The zero point may be absent (nullptr), one
// number, or one per index of dimension `axis`. Sums of products of the results are right modulo
// 2^32, as ONNX's int32 sums are.
absl::StatusOr<Tensor> SubtractZeroPoint(EvalContext& ctx, const Tensor& q,
                                         /*nullable*/ const Tensor* zero_point, int64_t axis);

// value, which is integral or infinite, as Q; the nearest limit where it does not fit, and the
// lowest for NaN.
template <typename Q>
Q Saturate(double value) {
  constexpr auto low = static_cast<double>(std::numeric_limits<Q>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<Q>::max());
  if (!(value > low)) return std::numeric_limits<Q>::min();
  return value >= high ? std::numeric_limits<Q>::max() : static_cast<Q>(value);
}

}  // namespace mge
