// SPDX-License-Identifier: Apache-2.0
#include "core/base/shape.h"

#include <algorithm>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

bool CheckedMul(int64_t a, int64_t b, int64_t* out) { return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out); }

bool CheckedAdd(int64_t a, int64_t b, int64_t* out) { return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out); }

absl::StatusOr<int64_t> NumElements(std::span<const int64_t> shape) {
  int64_t n = 1;  // counts a dimension of 0 as 1, because the strides of an empty tensor must not overflow either
  bool empty = false;
  for (int64_t d : shape) {
    if (d < 0) {
      return Fail(errors::kInvalidTensor, fmt::format("shape {} has a negative dimension", ShapeText(shape)));
    }
    empty = empty || d == 0;
    if (!CheckedMul(n, std::max<int64_t>(d, 1), &n)) {
      return Fail(errors::kInvalidTensor,
                  fmt::format("size overflow: shape {} has more than 2^63 elements", ShapeText(shape)));
    }
  }
  return empty ? 0 : n;
}

absl::StatusOr<int64_t> NumBytes(DType dtype, std::span<const int64_t> shape) {
  MGE_ASSIGN_OR_RETURN(int64_t n, NumElements(shape));
  if (!CheckedMul(n, ElementBytes(dtype), &n)) {
    return Fail(errors::kInvalidTensor,
                fmt::format("size overflow: shape {} of {} has more than 2^63 bytes", ShapeText(shape), DTypeName(dtype)));
  }
  return n;
}

int64_t Elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Shape Strides(std::span<const int64_t> shape) {
  Shape strides(shape.size());
  int64_t n = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = n;
    n *= shape[i];
  }
  return strides;
}

bool IsStatic(std::span<const int64_t> shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; });
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ",";
    out += shape[i] == kUnknownDim ? "?" : std::to_string(shape[i]);
  }
  return out + "]";
}

absl::StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    int64_t& d = out[out.size() - 1 - i];
    if (x == y || y == 1) {
      d = x;
    } else if (x == 1) {
      d = y;
    } else if (x == kUnknownDim || y == kUnknownDim) {
      d = std::max(x, y);
    } else {
      return Fail(errors::kInvalidNode,
                  fmt::format("shapes {} and {} cannot be broadcast together", ShapeText(a), ShapeText(b)));
    }
  }
  return out;
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Fail(errors::kInvalidNode, fmt::format("axis {} is outside of [{}, {})", axis, -rank, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace mge
