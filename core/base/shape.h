// SPDX-License-Identifier: Apache-2.0
// Shapes of tensors, outermost dimension first, and arithmetic with overflow checks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "core/base/dtype.h"
#include "core/base/status.h"

namespace mge {

// The dimensions of a type or tensor. In a type, kUnknownDim is a size that is not known; in a tensor all are >= 0.
using Shape = absl::InlinedVector<int64_t, 6>;

inline constexpr int64_t kUnknownDim = -1;
inline constexpr int kMaxRank = 64;

// Computes a*b or a+b. Returns false on overflow or if an operand is negative.
bool CheckedMul(int64_t a, int64_t b, int64_t* out);
bool CheckedAdd(int64_t a, int64_t b, int64_t* out);

// Returns the product of the dimensions, 1 for a scalar. Fails with kInvalidTensor on overflow or a negative dimension.
absl::StatusOr<int64_t> NumElements(std::span<const int64_t> shape);

// Returns the bytes of a dense tensor. Fails like NumElements.
absl::StatusOr<int64_t> NumBytes(DType dtype, std::span<const int64_t> shape);

// Returns the product without checks. The shape must be valid, such as a tensor's.
int64_t Elements(std::span<const int64_t> shape);

// Returns the row-major strides in elements.
Shape Strides(std::span<const int64_t> shape);

bool IsStatic(std::span<const int64_t> shape);

// Returns text such as "[1,3,224,224]", with "?" for an unknown dimension.
std::string ShapeText(std::span<const int64_t> shape);

// Returns the shape that both shapes broadcast to by NumPy's rules. An unknown dimension stays unknown unless the other one
// is > 1. Fails with kInvalidNode if they cannot be broadcast.
absl::StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b);

// Maps an axis in [-rank, rank) to [0, rank). Fails with kInvalidNode if it is out of range.
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank);

}  // namespace mge
