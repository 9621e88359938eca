// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum. Shared by its shape rule, its evaluator, its rewrite and the operation count.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"

namespace mge {

// The labels of a term's dimensions: a letter's character code, or kEllipsisLabel plus the position in the ellipsis,
// counted from the right.
using Labels = std::vector<int>;
inline constexpr int kEllipsisLabel = 256;

// A parsed equation.
struct EinsumEquation {
  std::vector<Labels> terms;  // one for each input; a repeated label selects a diagonal
  Labels output;              // each label once
  // The size of each label. A dimension of the ellipsis may be 1 in one input and this size in another.
  std::map<int, int64_t> size;
};

// Parses an equation such as "ij,jk->ik" for inputs of these shapes. Sizes may be unknown. Fails with kInvalidNode if
// the text is malformed or does not fit the shapes.
absl::StatusOr<EinsumEquation> ParseEinsum(const std::string& text, std::span<const Shape> shapes);

}  // namespace mge
