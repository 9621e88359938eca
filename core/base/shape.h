// SPDX-License-Identifier: Apache-2.0
// Shapes: dimensions of a tensor, outermost first, with arithmetic that cannot overflow in silence.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "core/base/dtype.h"
#include "core/base/status.h"

namespace mge {

// Dimensions. In a type, -1 stands for a size that is not known yet; in a tensor all are >= 0.
using Shape = absl::InlinedVector<int64_t, 6>;

inline constexpr int64_t kUnknownDim = -1;
inline constexpr int kMaxRank = 64;

// a*b and a+b; false on overflow or a negative operand.
bool CheckedMul(int64_t a, int64_t b, int64_t* out);
bool CheckedAdd(int64_t a, int64_t b, int64_t* out);

// Product of the dimensions; kInvalidTensor on overflow or a negative dimension. Empty shape: 1.
absl::StatusOr<int64_t> NumElements(std::span<const int64_t> shape);

// Bytes of a dense tensor; kInvalidTensor on overflow.
absl::StatusOr<int64_t> NumBytes(DType dtype, std::span<const int64_t> shape);

// The product for a shape that is known to be valid (a tensor's).
int64_t Elements(std::span<const int64_t> shape);

// Row-major strides in elements.
Shape Strides(std::span<const int64_t> shape);

bool IsStatic(std::span<const int64_t> shape);

// "[1,3,224,224]", unknown as "?"
std::string ShapeText(std::span<const int64_t> shape);

// Numpy broadcasting; kInvalidNode names both shapes. Unknown dimensions stay unknown unless the other one is > 1.
absl::StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b);

// Maps axis in [-rank, rank) to [0, rank).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank);

}  // namespace mge
