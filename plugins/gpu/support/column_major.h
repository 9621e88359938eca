// SPDX-License-Identifier: Apache-2.0
// Products in the terms of the vendors' libraries (cuBLASLt, rocBLAS), which have column-major matrices. A row-major y = a b is
// the column-major transpose of y = (transpose of b) (transpose of a), so the operands change places.
#pragma once

#include <vector>

#include "plugins/gpu/support/product.h"

namespace mge::gpu {

// A matrix of rows x columns in memory, in the order of columns. `transposed`: memory has the transposed matrix.
struct Stored {
  int64_t rows, columns;
  int64_t ld;
  bool transposed;
};

// One product: y = activation(alpha left right + beta start + bias), where y has `rows` rows of `columns` elements in memory,
// for each batch. Operands are inputs of the problem; -1: absent.
struct ColumnMajorProduct {
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  Stored left = {}, right = {};           // b and a
  int64_t left_step = 0, right_step = 0;  // elements between neighbouring batches
  int64_t rows = 0, columns = 0, depth = 0, batch = 0;
  double alpha = 1, beta = 0;
  int a = -1, b = -1;
  int bias = -1;   // one element per column of y
  int start = -1;  // -1 with beta 1: the output
  int output = 0;
  int before = -1;  // output that receives the activation's argument
  Activation activation = {kNoActivation, 0, 0};
  int64_t elements() const { return batch * rows * columns; }  // of y
};

// Reads a problem of one product, or of several of the same tensor. Refuses what no kernel computes, and with the library's
// name in the text what such libraries do not compute in one call.
Result FindColumnMajor(const Problem& p, const char* library, std::vector<ColumnMajorProduct>* out);
// Returns the pairs of a problem that a library can compute in place.
std::vector<mge_in_place> InPlaceOf(const std::vector<ColumnMajorProduct>& products);

// The places of a product's operands in a run. `start`, `bias` and `before` are that of y if there is none.
struct ProductSlots {
  Slot a, b, start, bias, y, before;
};
ProductSlots SlotsOf(const Binding& binding, const ColumnMajorProduct& product);

}  // namespace mge::gpu
