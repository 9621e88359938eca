// SPDX-License-Identifier: Apache-2.0
// Determinants.
#pragma once

#include <cstdint>
#include <vector>

namespace mge {

// Returns the determinant of an n x n matrix by elimination with the largest pivot of each column. Destroys `a`.
double Determinant(std::vector<double>& a, int64_t n);

// Returns the cofactors of an n x n matrix: the derivatives of its determinant by its elements. Of a singular matrix, computes a
// determinant for each element.
std::vector<double> Cofactors(const std::vector<double>& a, int64_t n);

}  // namespace mge
