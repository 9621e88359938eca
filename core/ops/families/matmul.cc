// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/matmul.h"

#include "fmt/format.h"

namespace mge {

absl::StatusOr<MatMulShape> ResolveMatMul(std::span<const int64_t> a, std::span<const int64_t> b) {
  auto fault = [&](std::string_view why) {
    return Fail(errors::kInvalidNode,
                fmt::format("shapes {} and {} cannot be multiplied: {}", ShapeText(a), ShapeText(b), why));
  };
  if (a.empty() || b.empty()) return fault("a scalar is not a matrix");
  MatMulShape s;
  s.m = a.size() == 1 ? 1 : a[a.size() - 2];
  s.k = a.back();
  int64_t rows = b.size() == 1 ? b[0] : b[b.size() - 2];
  s.n = b.size() == 1 ? 1 : b.back();
  if (s.k == kUnknownDim) s.k = rows;
  if (rows != kUnknownDim && rows != s.k) return fault(fmt::format("{} columns do not match {} rows", s.k, rows));
  if (a.size() > 2) s.batch_a.assign(a.begin(), a.end() - 2);
  if (b.size() > 2) s.batch_b.assign(b.begin(), b.end() - 2);
  MGE_ASSIGN_OR_RETURN(s.batch, BroadcastShapes(s.batch_a, s.batch_b));
  s.out = s.batch;
  if (a.size() > 1) s.out.push_back(s.m);
  if (b.size() > 1) s.out.push_back(s.n);
  return s;
}

}  // namespace mge
