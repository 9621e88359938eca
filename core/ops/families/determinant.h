// SPDX-License-Identifier: Apache-2.0
// Determinants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace mge {

// Fails with kInvalidNode if a shape does not end with two equal sizes. Unknown ones are accepted.
absl::Status CheckSquareMatrices(std::span<const int64_t> shape);

// Returns the determinant of an n x n matrix by elimination with the largest pivot of each column. Destroys `a`.
double Determinant(std::vector<double>& a, int64_t n);

// Returns the cofactors of an n x n matrix: the derivatives of its determinant by its elements. Computes a determinant for each
// element if the matrix is singular.
std::vector<double> Cofactors(const std::vector<double>& a, int64_t n);

}  // namespace mge
