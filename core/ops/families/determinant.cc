// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/determinant.h"

#include <algorithm>
#include <cmath>

#include "core/base/errors.h"
#include "core/base/shape.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Swaps rows so that the element on the diagonal of column `c` is the largest on or below it. Returns false if all are 0. Flips
// the sign of `*det` for a swap. Rows have `width` elements.
bool Pivot(std::vector<double>& a, int64_t n, int64_t width, int64_t c, double* det) {
  int64_t pivot = c;
  for (int64_t r = c + 1; r < n; ++r) {
    if (std::abs(a[r * width + c]) > std::abs(a[pivot * width + c])) pivot = r;
  }
  if (a[pivot * width + c] == 0) return false;
  if (pivot == c) return true;
  std::swap_ranges(a.begin() + c * width, a.begin() + (c + 1) * width, a.begin() + pivot * width);
  *det = -*det;
  return true;
}

// Returns the determinant and sets `inverse`, unless the matrix is singular. Returns 0 if it is.
double Invert(const std::vector<double>& a, int64_t n, std::vector<double>& inverse) {
  const int64_t width = 2 * n;
  std::vector<double> rows(static_cast<size_t>(n * width), 0);
  for (int64_t r = 0; r < n; ++r) {
    std::copy_n(a.begin() + r * n, n, rows.begin() + r * width);
    rows[r * width + n + r] = 1;
  }
  double det = 1;
  for (int64_t c = 0; c < n; ++c) {
    if (!Pivot(rows, n, width, c, &det)) return 0;
    const double scale = rows[c * width + c];
    det *= scale;
    for (int64_t k = c; k < width; ++k) rows[c * width + k] /= scale;
    for (int64_t r = 0; r < n; ++r) {
      const double factor = rows[r * width + c];
      if (r == c || factor == 0) continue;
      for (int64_t k = c; k < width; ++k) rows[r * width + k] -= factor * rows[c * width + k];
    }
  }
  inverse.resize(static_cast<size_t>(n * n));
  for (int64_t r = 0; r < n; ++r) std::copy_n(rows.begin() + r * width + n, n, inverse.begin() + r * n);
  return det;
}

// Returns the matrix without a row and a column.
std::vector<double> Without(const std::vector<double>& a, int64_t n, int64_t row, int64_t column) {
  std::vector<double> out;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      if (r != row && c != column) out.push_back(a[r * n + c]);
    }
  }
  return out;
}

}  // namespace

absl::Status CheckSquareMatrices(std::span<const int64_t> shape) {
  const size_t r = shape.size();
  if (r >= 2 && (shape[r - 1] == shape[r - 2] || shape[r - 1] < 0 || shape[r - 2] < 0)) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("shape {} does not hold square matrices", ShapeText(shape)));
}

double Determinant(std::vector<double>& a, int64_t n) {
  double det = 1;
  for (int64_t c = 0; c < n; ++c) {
    if (!Pivot(a, n, n, c, &det)) return 0;
    det *= a[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = a[r * n + c] / a[c * n + c];
      for (int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
    }
  }
  return det;
}

std::vector<double> Cofactors(const std::vector<double>& a, int64_t n) {
  std::vector<double> out(static_cast<size_t>(n * n)), inverse;
  const double det = Invert(a, n, inverse);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      if (det != 0) {
        out[r * n + c] = det * inverse[c * n + r];
        continue;
      }
      std::vector<double> minor = Without(a, n, r, c);
      out[r * n + c] = ((r + c) % 2 == 0 ? 1 : -1) * Determinant(minor, n - 1);
    }
  }
  return out;
}

}  // namespace mge
