// SPDX-License-Identifier: Apache-2.0
// Reads QuantizeLinear and DequantizeLinear: how scales and zero points belong to elements. Finds the inputs of products and
// convolutions of integers.
#pragma once

#include <cstdint>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Input 1 of the node is the scale, input 2 the zero point, if it is present. Both have the same shape.
struct Quantization {
  bool one = true;    // one scale for all elements
  int64_t axis = 0;   // else one for each index of this axis
  int64_t block = 0;  // not 0: one for as many neighbours along the axis, with further scales along the other axes
  // The type in which QuantizeLinear divides by the scale.
  mge_dtype division = MGE_DTYPE_F32;
};

inline Quantization ReadQuantization(const Node& node) {
  const Value scale = node.input(1);
  const int64_t precision = node.Int("precision");  // only QuantizeLinear has it
  Quantization q = {.axis = node.Int("axis"), .block = node.Int("block_size")};
  q.one = q.block == 0 && scale.rank() <= 1 && scale.elements() == 1;
  q.division = precision != 0 ? static_cast<mge_dtype>(precision) : scale.dtype();
  return q;
}

// The numbers of a node's inputs: a product or convolution of a and b, their scales and zero points, those of the result, and
// the addend. -1: the operator has no such input.
struct IntegerInputs {
  int a, b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero, start;

  bool quantizes() const { return y_scale >= 0; }  // the result has integers of 8 bits, not sums
};

// Requires MatMulInteger, ConvInteger, QLinearMatMul or QLinearConv.
inline IntegerInputs IntegerInputsOf(const Node& node) {
  if (node.op() == "QLinearConv") return {0, 3, 1, 2, 4, 5, 6, 7, 8};
  if (node.op() == "QLinearMatMul") return {0, 3, 1, 2, 4, 5, 6, 7, -1};
  return {0, 1, -1, 2, -1, 3, -1, -1, -1};
}

}  // namespace MGE_HIDDEN
