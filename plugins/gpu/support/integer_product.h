// SPDX-License-Identifier: Apache-2.0
// Reads MatMulInteger, alone or with the nodes behind it that make its sums real numbers, and QLinearMatMul as one product.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/integer_matmul.h"

namespace mge::gpu {

// A product of 8-bit integers, with the numbers of its operands in the problem; -1: absent.
struct IntegerProduct {
  IntegerMatMulArgs args = {};  // without pointers
  int a = -1, b = -1, a_zero = -1, b_zero = -1, a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1, bias = -1;
  int64_t b_matrices = 1;  // in b

  IntegerResult result = IntegerResult::kSums;

  double operations() const { return 2.0 * static_cast<double>(args.batch * args.m * args.n) * static_cast<double>(args.k); }
};

// Offers, for every MatMulInteger, the group with a Cast to float32, a Mul by a scale, and an Add of a bias: the product of a
// model that is quantized in the run.
void OfferIntegerProducts(const Pattern& pattern, ClaimList& claims);

// Refuses what no kernel computes.
Result FindIntegerProduct(const Problem& p, IntegerProduct* out);

}  // namespace mge::gpu
