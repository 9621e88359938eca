// SPDX-License-Identifier: Apache-2.0
// Reads MatMul and Gemm.
#pragma once

#include <algorithm>
#include <vector>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A batch of products of m x k by k x n matrices: alpha * A B + beta * C. Strides and steps are in elements of plain memory.
struct MatrixProduct {
  struct BatchAxis {
    int64_t size = 1;
    int64_t a = 0, b = 0;  // steps between the matrices of A and of B; 0 where they are broadcast
  };
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 0, a_k = 1, b_k = 0, b_column = 1;
  std::vector<BatchAxis> axes = {};  // of the batch, outermost first
  int64_t batch = 1;                 // the product of their sizes
  float alpha = 1, beta = 1;
  int64_t c_row = 0, c_column = 0;  // of a Gemm's C; 0 where it is broadcast

  // If all products have the same B, and A has all rows, makes them one product. Returns whether it did.
  bool MergeBatch() {
    if (axes.empty()) return false;
    int64_t step = m * k;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      if (axis->b != 0 || (axis->size != 1 && axis->a != step)) return false;
      step *= axis->size;
    }
    m *= batch;
    batch = 1;
    axes.clear();
    return true;
  }
};

// Reads the product of two operands that broadcast as those of MatMul do. Fails if the sizes do not match.
inline Result ReadMatMul(const Value& a, const Value& b, MatrixProduct* out) {
  if (a.rank() < 1 || b.rank() < 1) return {MGE_INVALID_ARGUMENT, "MatMul needs operands with at least one dimension"};
  *out = {.m = a.rank() == 1 ? 1 : a.dim(-2), .n = b.rank() == 1 ? 1 : b.dim(-1), .k = a.dim(-1)};
  if ((b.rank() == 1 ? b.dim(0) : b.dim(-2)) != out->k) return {MGE_INVALID_ARGUMENT, "the matrix sizes do not match"};
  out->a_row = out->k;
  out->b_k = out->n;
  const int a_batch = std::max(0, a.rank() - 2), b_batch = std::max(0, b.rank() - 2), rank = std::max(a_batch, b_batch);
  out->axes.resize(static_cast<size_t>(rank));
  int64_t a_step = out->m * out->k, b_step = out->k * out->n;
  for (int i = 1; i <= rank; ++i) {
    const int64_t da = i <= a_batch ? a.dim(a_batch - i) : 1, db = i <= b_batch ? b.dim(b_batch - i) : 1;
    MatrixProduct::BatchAxis& axis = out->axes[static_cast<size_t>(rank - i)];
    axis = {da == 1 ? db : da, da == 1 ? 0 : a_step, db == 1 ? 0 : b_step};
    a_step *= da;
    b_step *= db;
    out->batch *= axis.size;
  }
  return {};
}

// Reads a Gemm.
inline Result ReadGemm(const Node& node, MatrixProduct* out) {
  const Value a = node.input(0), b = node.input(1);
  if (a.rank() != 2 || b.rank() != 2) return {MGE_INVALID_ARGUMENT, "Gemm needs matrices"};
  const bool ta = node.Int("transA") != 0, tb = node.Int("transB") != 0;
  *out = {.m = a.dim(ta ? 1 : 0), .n = b.dim(tb ? 0 : 1), .k = a.dim(ta ? 0 : 1)};
  if (b.dim(tb ? 1 : 0) != out->k) return {MGE_INVALID_ARGUMENT, "the matrix sizes do not match"};
  out->a_row = ta ? 1 : a.dim(1);
  out->a_k = ta ? a.dim(1) : 1;
  out->b_k = tb ? 1 : b.dim(1);
  out->b_column = tb ? b.dim(1) : 1;
  out->alpha = node.Float("alpha");
  out->beta = node.Float("beta");
  if (!node.has_input(2)) return {};
  const Value c = node.input(2);  // broadcast to (m, n)
  const int64_t rows = c.rank() == 2 ? c.dim(0) : 1, columns = c.rank() ? c.dim(-1) : 1;
  out->c_row = rows == 1 ? 0 : columns;
  out->c_column = columns == 1 ? 0 : 1;
  return {};
}

// Reads a MatMul or a Gemm.
inline Result ReadProduct(const Node& node, MatrixProduct* out) {
  return node.Is("Gemm") ? ReadGemm(node, out) : ReadMatMul(node.input(0), node.input(1), out);
}

}  // namespace MGE_HIDDEN
