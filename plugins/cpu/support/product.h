// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, with or without an epilogue, as one batch of matrix products.
#pragma once

#include <vector>

#include "mge/plugin.hpp"
#include "support/epilogue.h"
#include "support/gemm.h"

namespace mge::cpu {

// A batch of matrix products.
struct Product {
  // The position of one product: elements of A and C, and the number of the matrix of B.
  struct Item {
    int64_t a, b, c;
  };
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  GemmSize size;
  int a = -1, b = -1;                                 // operand numbers
  int64_t a_row = 0, a_k = 0, b_k = 0, b_column = 0;  // strides in elements
  bool b_constant = false;                            // B is constant and packed in advance
  bool b_state = false;                               // B is a state, which the host packs before each use
  int64_t b_items = 1;                                // number of matrices of B
  struct BatchAxis {
    int64_t size, a, b;  // steps between products, as in Item
  };
  std::vector<BatchAxis> batch_axes;  // outermost first; empty: one product
  float alpha = 1, beta = 1;
  int start = -1;  // operand C of a Gemm
  Value start_value = Value(nullptr);
  int64_t start_row = 0, start_column = 0;  // its strides; 0 if broadcast
  Epilogue epilogue;
  int epilogue_bias = -1, epilogue_add = -1;  // operand numbers
  bool adds = false;                          // the product is added to what the output holds

  std::vector<Item> Items() const;  // returns the whole batch; call it only for a kernel that will run
};

// Reads sizes, strides and the batch of a MatMul of two operands. Fails with the reason if it is not supported.
Result FindMatMul(const Value& a, const Value& b, Product* out);

// Reads the product of a problem. Fails with the reason if it is not supported. All shapes must be known.
Result FindProduct(const Problem& p, Product* out);

}  // namespace mge::cpu
