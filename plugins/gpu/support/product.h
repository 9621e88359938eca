// SPDX-License-Identifier: Apache-2.0
// Reads MatMul and Gemm, alone or with an epilogue, as one product of matrices.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/matmul.h"

namespace mge::gpu {

// A product, with the numbers of its operands in the problem; -1: absent.
struct Product {
  MatMulArgs args = {};  // without pointers
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int a = -1, b = -1, c = -1, bias = -1, residual = -1;
  int y = 0;          // number of the output
  int before = -1;    // number of the output that receives the activation's argument
  bool adds = false;  // the result is added to what the output holds
  double flops() const { return 2.0 * static_cast<double>(args.m * args.n * args.batch) * static_cast<double>(args.k); }
};

// Reads a problem whose first node is a MatMul or a Gemm. Refuses what no kernel computes.
Result FindProduct(const Problem& p, Product* out);

}  // namespace mge::gpu
