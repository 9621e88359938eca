// SPDX-License-Identifier: Apache-2.0
// Products of float matrices with an epilogue: C = act(A B + bias + add). They take most of the time of many models, so they
// must be fast without a vendor library, and must also accept 16-bit floats and the windows of a convolution.
//
// Algorithm: blocked and packed, as in GotoBLAS (K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008).
//   - K is split into equal blocks of at most kGemmMaxK.
//   - For each block of at most kGemmMaxRows rows, A is copied into a small buffer on the stack. So one kernel serves every
//     form of A: plain or transposed rows, 16-bit floats, the windows of a convolution.
//   - B is packed once into panels of `columns` columns if it is constant; otherwise it is read in place.
//   - A tile of the registers' size computes a few rows times a panel. Later blocks of k add to the sums in C.
// The sum of an element runs over k in one fixed order, independent of the other rows, the split and the number of threads.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

enum class Activation : uint8_t {
  kNone,
  kClip /* lo..hi, Relu among them */,
  kGelu,
  kGeluTanh,
  kSigmoid,
  kTanh,
  kHardSwish,
  kSwish,
  kLeakyRelu
};

// The windows of a channels-last image as rows of a matrix: row (image, z, y, x), column (kz, ky, kx, channel). A
// two-dimensional image has depth 1.
struct ConvWindows {
  int64_t h, w;      // input
  int64_t pixel;     // floats between two pixels (all channels)
  int64_t channels;  // channels that the product reads
  int64_t kh, kw, sh, sw, ph, pw, dh, dw;
  int64_t oh, ow;                                         // output
  int64_t d = 1, kd = 1, sd = 1, pd = 0, dd = 1, od = 1;  // depth
};

// The left matrix of a product, in one of its forms.
struct GemmA {
  const void* data;
  mge_dtype type;      // F32, F16, BF16
  int64_t row_stride;  // in elements
  int64_t k_stride;
  float scale;                 // multiplies A
  const ConvWindows* windows;  // if set: data is the image, and the strides are ignored
};

// A matrix product with its epilogue.
struct GemmTask {
  GemmA a;
  const float* b;
  int64_t ldb;  // 0: b is packed; otherwise b is row-major with ldb floats per row
  int64_t m, n, k;
  float* c;
  int64_t ldc;
  const float* bias;      // per column, or null
  const float* row_bias;  // per row, row_bias_stride floats apart (0 or 1), or null
  int64_t row_bias_stride;
  const float* add;  // a matrix, or null; may be c
  int64_t ld_add;
  Activation activation;
  float lo, hi;  // kClip: limits; kLeakyRelu: lo is the slope
};

// The functions for one instruction set.
struct GemmTable {
  int rows;     // of the largest tile
  int columns;  // columns of a panel of B
  // Computes rows m0..m1 of panels p0..p1.
  void (*run)(const GemmTask& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1);
  // Packs the panels p0..p1 of a k by n matrix whose element (i, j) is source[i * row_stride + j * column_stride], times
  // scale. The packed form has PackedFloats(k, n, columns) floats.
  void (*pack)(const void* source, mge_dtype type, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n,
               float scale, float* packed, int64_t p0, int64_t p1);
  // Writes out[i] = source[i] * scale for i < n.
  void (*widen)(const void* source, mge_dtype type, int64_t n, float scale, float* out);
  // Converts rows m0..m1 and columns n0..n1 of a float matrix to a 16-bit type.
  void (*narrow)(const float* source, int64_t lds, void* out, mge_dtype type, int64_t ldo, int64_t m0, int64_t m1,
                 int64_t n0, int64_t n1);
};

// The maximum size of a block of k. Blocks have equal sizes.
inline constexpr int64_t kGemmMaxK = 256;
// The maximum number of rows that are copied and computed at a time.
inline constexpr int64_t kGemmMaxRows = 112;

MGE_CPU_INLINE int64_t GemmKBlock(int64_t k) {
  int64_t blocks = (k + kGemmMaxK - 1) / kGemmMaxK;
  return blocks ? (k + blocks - 1) / blocks : 1;
}
MGE_CPU_INLINE int64_t PackedFloats(int64_t k, int64_t n, int columns) {
  return k * ((n + columns - 1) / columns * columns);
}

MGE_CPU_DISPATCH(GemmTable, Gemm)

}  // namespace mge::cpu
