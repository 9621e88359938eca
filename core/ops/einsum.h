// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum, for its shape rule, its evaluator, its rewrite and the count of its operations.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"

namespace mge {

// The labels of dimensions: a letter's own code, or kEllipsisLabel + the position from the right in the ellipsis.
using Labels = std::vector<int>;
inline constexpr int kEllipsisLabel = 256;

struct EinsumEquation {
  std::vector<Labels> terms;  // one for each input; a label that repeats asks for a diagonal
  Labels output;              // each label once
  // Size of each label. Dimensions of the ellipsis may be 1 in an input where others have this size.
  std::map<int, int64_t> size;
};

// Reads "ij,jk->ik" for inputs of these shapes. Sizes may be unknown. Fails with kInvalidNode if the shapes do not fit.
absl::StatusOr<EinsumEquation> ParseEinsum(const std::string& text, std::span<const Shape> shapes);

}  // namespace mge
