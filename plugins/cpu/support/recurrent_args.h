// SPDX-License-Identifier: Apache-2.0
// The arguments of recurrent kernels, and the format of quantized weights and rows.
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

// The arguments of a launch.
struct RecurrentArgs {
  Recurrence r;
  GateOrder order;
  const GemmTable* gemm;
  const RecurrentTable* cells;
  const Int8Table* bytes;
  Isa isa;
  bool int8;  // a quantized recurrence multiplies bytes; otherwise, the floats that the bytes represent
  Slot x, w, u, b, lengths, h, c, p, y, y_h, y_c, workspace;  // u: the recurrent weights
  Slot w_scale, w_zero, u_scale, u_zero;                      // for quantized weights
  bool scale_columns[2], zero_columns[2];                     // for W and R: one value per column, not per direction
  bool signed_weights[2];
  bool packs_w, packs_u, sums_bias;  // done in the run, because the operand is not constant
  int64_t group;                     // sequences per chain
  int64_t block_steps;               // steps whose inputs are multiplied by one product
  bool at_once;                      // chains run in parallel; otherwise one after another, each on all threads
  int64_t unit_chunks;               // chunks per step of a chain that uses all threads
  // Offsets in the workspace, in floats. x_at: quantized X; with int8, a RowHead followed by rows of bytes.
  int64_t x_at, bias_at, w_at, u_at, rows_at, chains_at, chain_floats;

  int64_t groups() const { return group ? (r.batch + group - 1) / group : 0; }
  int64_t chains() const { return r.directions * groups(); }
  int64_t state() const { return (r.hidden + 15) / 16 * 16; }  // floats per row of h or c in the workspace
  bool separate_bias() const { return r.kind == Recurrence::Kind::kGru && r.linear_before_reset; }
  int64_t bias_floats() const { return order.width() + (separate_bias() ? order.blocks * order.columns : 0); }
  // Returns the bytes of the packed weights of one direction; for int8, with the format of Int8Weights.
  int64_t packed_bytes(int64_t k) const { return order.width() * (int8 ? Int8Bytes(k) + 12 : 4 * k); }
};

// Weights as bytes: the panels, followed by the sum of the bytes, the zero point and the scale of each column.
struct Int8Weights {
  int8_t* panels;
  int32_t *sums, *zeros;
  float* scales;
  Int8Weights(void* packed, int64_t k, int64_t width)
      : panels(static_cast<int8_t*>(packed)),
        sums(reinterpret_cast<int32_t*>(panels + width * Int8Bytes(k))),
        zeros(sums + width),
        scales(reinterpret_cast<float*>(zeros + width)) {}
};

// Rows as bytes, each followed by its sum. All have the same scale and zero point.
struct Int8Rows {
  uint8_t* data;
  int64_t k;
  float scale;
  float zero;
  int64_t pitch() const { return Int8Bytes(k) + 4; }
  uint8_t* row(int64_t i) const { return data + i * pitch(); }
  int32_t* sum(int64_t i) const { return reinterpret_cast<int32_t*>(row(i) + Int8Bytes(k)); }
};

// The scale and zero point of the bytes of X, stored before its rows.
struct RowHead {
  float scale, zero, reserved[14];
};

// Quantizes to 8 bits with a range that includes 0 and all values passed to Cover().
struct Quantizer {
  const RecurrentTable& table;
  float low = 0, high = 0;
  void Cover(const float* x, int64_t n) { table.cover(x, n, &low, &high); }
  float scale() const { return high == low ? 1.0f : (high - low) / 255.0f; }
  float zero() const { return std::nearbyint(std::clamp(0.0f - low / scale(), 0.0f, 255.0f)); }
  void Requantize(const float* x, int64_t n, float* out) const { table.requantize(x, n, scale(), zero(), out); }
};

}  // namespace mge::cpu
