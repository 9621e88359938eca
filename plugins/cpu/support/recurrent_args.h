// SPDX-License-Identifier: Apache-2.0
// The arguments of recurrent operators, and the form of quantized weights and rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "isa.h"
#include "mge/plugin.hpp"
#include "support/gate_order.h"
#include "vec/gemm.h"
#include "vec/int8.h"
#include "vec/recurrent.h"

namespace mge::cpu {

// The arguments of a step.
struct RecurrentArgs {
  Recurrence r;
  GateOrder order;
  const GemmTable* gemm;
  const RecurrentTable* cells;
  const Int8Table* bytes;
  Isa isa;
  bool int8;  // a quantized recurrence multiplies bytes; otherwise the numbers that the bytes represent
  Slot x, w, u, b, lengths, h, c, p, y, y_h, y_c, workspace;  // u: the recurrent weights
  Slot w_scale, w_zero, u_scale, u_zero;                      // of quantized weights
  bool scale_columns[2], zero_columns[2];                     // of W, R: one for each column, not for each direction
  bool signed_weights[2];
  bool packs_w, packs_u, sums_bias;  // during the run, because the operand is not constant
  int64_t group;        // sequences of a chain
  int64_t block_steps;  // steps whose inputs one product computes
  bool at_once;         // chains run in parallel; otherwise one after the other, each on all threads
  int64_t unit_chunks;  // chunks of a step of a chain that has all threads
  // Offsets in the workspace, in floats. x_at: quantized X; with int8 a RowHead, then rows of bytes.
  int64_t x_at, bias_at, w_at, u_at, rows_at, chains_at, chain_floats;

  int64_t groups() const { return group ? (r.batch + group - 1) / group : 0; }
  int64_t chains() const { return r.directions * groups(); }
  int64_t state() const { return (r.hidden + 15) / 16 * 16; }  // floats of a row of h or c in the workspace
  bool separate_bias() const { return r.kind == Recurrence::Kind::kGru && r.linear_before_reset; }
  int64_t bias_floats() const { return order.width() + (separate_bias() ? order.blocks * order.columns : 0); }
  // Bytes of the packed weights of one direction, and for int8 the places in them.
  int64_t packed_bytes(int64_t k) const { return order.width() * (int8 ? Int8Bytes(k) + 12 : 4 * k); }
};

// Weights as bytes: the panels, then the sum of the bytes, the zero point and the scale of each column.
struct Int8Weights {
  int8_t* panels;
  int32_t *sums, *zeros;
  float* scales;
  Int8Weights(void* packed, int64_t k, int64_t width)
      : panels(static_cast<int8_t*>(packed)), sums(reinterpret_cast<int32_t*>(panels + width * Int8Bytes(k))),
        zeros(sums + width), scales(reinterpret_cast<float*>(zeros + width)) {}
};

// Rows as bytes, each followed by its sum; all of one scale and zero point.
struct Int8Rows {
  uint8_t* data;
  int64_t k;
  float scale;
  float zero;
  int64_t pitch() const { return Int8Bytes(k) + 4; }
  uint8_t* row(int64_t i) const { return data + i * pitch(); }
  int32_t* sum(int64_t i) const { return reinterpret_cast<int32_t*>(row(i) + Int8Bytes(k)); }
};

// The scale and zero point of the bytes of X, before its rows.
struct RowHead {
  float scale, zero, reserved[14];
};

// Quantizes to 8 bits with a range that covers all values seen, and 0.
struct Quantizer {
  const RecurrentTable& table;
  float low = 0, high = 0;
  void Cover(const float* x, int64_t n) { table.cover(x, n, &low, &high); }
  float scale() const { return high == low ? 1.0f : (high - low) / 255.0f; }
  float zero() const { return std::nearbyint(std::clamp(0.0f - low / scale(), 0.0f, 255.0f)); }
  void Requantize(const float* x, int64_t n, float* out) const { table.requantize(x, n, scale(), zero(), out); }
};

}  // namespace mge::cpu
