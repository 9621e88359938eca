// SPDX-License-Identifier: Apache-2.0
// Products of matrices: the shape rule of NumPy's matmul and a loop in cache-friendly order.
#pragma once

#include <algorithm>
#include <vector>

#include "core/ops/families/binary.h"
#include "core/ops/infer_checks.h"

namespace mge {

// The shapes of a product. A vector is a row on the left and a column on the right; its dimension of 1 is not in `out`.
// Unknown sizes stay unknown.
struct MatMulShape {
  Shape out;
  Shape batch;             // batch dimensions of the output
  Shape batch_a, batch_b;  // batch dimensions of the inputs
  int64_t m = 1, k = 1, n = 1;
};
// Resolves the shapes of a product. Fails with kInvalidNode if they do not match.
absl::StatusOr<MatMulShape> ResolveMatMul(std::span<const int64_t> a, std::span<const int64_t> b);

// The type in which products are summed: double for floating types, the unsigned type (modulo 2^bits) for integers.
template <typename T>
using ProductSum =
    std::conditional_t<kIsFloating<T>, double, std::make_unsigned_t<std::conditional_t<kIsFloating<T>, int, T>>>;

// Computes c[m,n] = a[m,k] · b[k,n], row-major. `sums` must have at least n elements. `store(index in c, sum)` receives
// each result.
template <typename T, typename Store>
absl::Status MultiplyMatrices(EvalContext& ctx, const T* a, const T* b, int64_t m, int64_t k, int64_t n,
                              std::vector<ProductSum<T>>& sums, Store store) {
  using S = ProductSum<T>;
  for (int64_t i = 0; i < m; ++i) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    std::fill(sums.begin(), sums.begin() + n, S(0));
    for (int64_t p = 0; p < k; ++p) {
      S factor = static_cast<S>(a[i * k + p]);
      const T* row = b + p * n;
      for (int64_t j = 0; j < n; ++j) sums[j] += factor * static_cast<S>(row[j]);
    }
    for (int64_t j = 0; j < n; ++j) store(i * n + j, sums[j]);
  }
  return absl::OkStatus();
}

// Computes all products of a batch. `store(offset in the output, sum)` receives each result.
template <typename T, typename Store>
absl::Status MultiplyBatches(EvalContext& ctx, const MatMulShape& s, const T* a, const T* b, Store store) {
  std::vector<ProductSum<T>> sums(s.n);
  absl::Status status;
  ForBroadcast(s.batch_a, s.batch_b, s.batch, [&](int64_t i, int64_t ia, int64_t ib) {
    if (!status.ok()) return;
    status = MultiplyMatrices(ctx, a + ia * s.m * s.k, b + ib * s.k * s.n, s.m, s.k, s.n, sums,
                              [&](int64_t at, auto sum) { store(i * s.m * s.n + at, sum); });
  });
  return status;
}

}  // namespace mge
