// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm, with or without an epilogue, as one batch of products of matrices.
#pragma once

#include <vector>

#include "mge/plugin.hpp"
#include "support/epilogue.h"
#include "support/gemm.h"

namespace mge::cpu {

struct Product {
  // Of one product: elements of A and C; for B the number of its matrix.
  struct Item {
    int64_t a, b, c;
  };
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  GemmSize size;
  int a = -1, b = -1;  // operands
  int64_t a_row = 0, a_k = 0, b_k = 0, b_column = 0;  // strides in elements
  bool b_constant = false;                            // and packed in advance
  int64_t b_items = 1;                                // matrices of B
  struct BatchAxis {
    int64_t size, a, b;                               // steps from one product to the next, as in Item
  };
  std::vector<BatchAxis> batch_axes;                  // outermost first; none: one product
  float alpha = 1, beta = 1;
  int start = -1;                                     // C of a Gemm
  Value start_value = Value(nullptr);
  int64_t start_row = 0, start_column = 0;            // its strides, 0 where it is broadcast
  Epilogue epilogue;
  int epilogue_bias = -1, epilogue_add = -1;          // operands

  std::vector<Item> Items() const;  // of the whole batch: for a kernel that will run
};

// The product that a problem asks for, or why it is none of ours. All shapes must be known.
Result FindProduct(const Problem& p, Product* out);

}  // namespace mge::cpu
