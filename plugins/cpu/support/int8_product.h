// SPDX-License-Identifier: Apache-2.0
// Kernels of 8-bit matrix products, and of convolutions as products of their windows.
#pragma once

#include <vector>

#include "support/convolution.h"
#include "support/int8_parameters.h"
#include "support/product.h"

namespace mge::cpu {

// A batch of products of bytes.
struct Int8Product {
  GemmSize size;
  int a = -1, b = -1;  // operand numbers
  bool a_constant = false, b_constant = false;
  int64_t b_items = 1;  // number of matrices of B
  int64_t taps = 1;     // of a filter; 1: a matrix
  int64_t ldc = 0;
  Int8Source source = {};  // the first matrix of B
  bool sets_differ = false;
  bool windowed = false;    // the rows are windows, or pixels, of an image
  bool pointwise = false;   // the pixels are the rows
  Convolution convolution;  // if `windowed`
  std::vector<Product::BatchAxis> batch_axes;
  Int8Parameters parameters;

  // Returns whether rows are copied before they are multiplied.
  bool copies() const { return windowed ? !pointwise || size.k % 4 != 0 : size.k % 4 != 0; }
  double serial_us(Isa isa) const;
};

// Reads the product of a problem. Fails with the reason if it is not supported. All shapes must be known.
Result FindInt8Product(const Problem& p, Int8Product* out);

// Returns a kernel for the product, and the workspace that it needs.
KernelPtr MakeInt8Kernel(const Int8Product& product, Isa isa);
uint64_t Int8Workspace(const Int8Product& product, Isa isa);

}  // namespace mge::cpu
