// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit rows with 8-bit matrices, with the steps that follow the sums in quantized operators. Sums are exact
// modulo 2^32, so all instruction sets give the same bits.
//
// The instructions multiply unsigned bytes with signed ones. If A is unsigned, packed B is signed; if A is signed, packed B is
// unsigned. So A is never converted. Packing moves B and its zero point by 128 if necessary.
#pragma once

#include "types.h"
#include "vec/dispatch.h"
#include "vec/gemm.h"

namespace mge::cpu {

// Columns per panel of packed B. A panel contains, for every 4 steps of k, 4 bytes of each column.
inline constexpr int64_t kInt8Columns = 16;
MGE_CPU_INLINE int64_t Int8Bytes(int64_t k) { return (k + 3) / 4 * 4; }  // bytes of a row or column
MGE_CPU_INLINE int64_t Int8Panels(int64_t n) { return (n + kInt8Columns - 1) / kInt8Columns; }

// Rows that must be copied are at most this long.
inline constexpr int64_t kInt8MaxCopied = 60 << 10;

// The result of a product.
enum class Int8Result : uint8_t {
  kInt32,     // the sums
  kFloat,     // scaled, plus the bias
  kAddFloat,  // scaled, added to C
  kUint8,     // scaled, plus the bias, divided, rounded, plus the zero point, saturated
  kInt8,
};

// The left matrix.
struct Int8A {
  const void* data;
  bool is_signed;
  int64_t stride;              // bytes between rows
  bool padded;                 // Int8Bytes(k) bytes of each row can be read
  const ConvWindows* windows;  // if set: data is a channels-last image, and the rows are its windows
  uint8_t outside;             // byte outside of the image
};

// A product and the steps that follow. Arrays per column have whole panels. The sum of an element is
//   sum over k of a b + start[column] - a_zero b_sums[column] - b_zero[column] (a_sum - k a_zero)
struct Int8Task {
  Int8A a;
  const void* b;  // packed
  int64_t k, n;
  const int32_t* start;   // per column; nullable
  const int32_t* b_sums;  // per column; null: the start contains this term
  const int32_t* b_zero;  // per column; null: b_one_zero for all
  const int32_t* a_sums;  // per row, a_sums_stride apart; null: computed if B has zero points
  int64_t a_sums_stride;
  int32_t a_zero;
  int32_t b_one_zero;  // the zero point of all columns, if b_zero is null
  Int8Result result;
  const float* scale;  // per column
  float a_scale;       // multiplies all scales
  const float* bias;   // per column; nullable
  float divisor;       // of kUint8 and kInt8: divides after the bias was added
  int32_t y_zero;
  void* c;
  int64_t ldc;  // elements between rows
};

// A matrix to pack. Its element at (tap * channels + channel, column) is at the offset
// tap * tap_stride + channel * channel_stride + column * column_stride.
struct Int8Source {
  const void* data;
  int64_t taps, channels, n;
  int64_t tap_stride, channel_stride, column_stride;
  bool is_signed;
  bool packs_signed;  // the packed form
};

struct Int8Table {
  // Computes rows m0..m1 of panels p0..p1.
  void (*run)(const Int8Task& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1);
  // The same with VNNI instructions, which the processor must have. Null if the instruction set has none.
  void (*run_vnni)(const Int8Task& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1);
  // Packs panels p0..p1 and writes the sums of the packed bytes of their columns.
  void (*pack)(const Int8Source& source, int64_t p0, int64_t p1, void* out, int32_t* sums);
  // Writes x as bytes with this scale and zero point, padded with zeros to Int8Bytes(n). Returns the sum of the bytes.
  int32_t (*quantize)(const float* x, int64_t n, float scale, float zero, uint8_t* out);
};

MGE_CPU_DISPATCH(Int8Table, Int8)

}  // namespace mge::cpu
