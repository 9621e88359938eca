// SPDX-License-Identifier: Apache-2.0
// The cells of RNN, GRU and LSTM: what follows the products of one step.
//
// The sums of the gates of one sequence lie in blocks of `columns` units, one panel of the packed weights each
// (support/gate_order.h says in which order), so that a chunk of blocks has every gate of its units.
#pragma once

#include "mge/plugin/gate.hpp"
#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// The parameters of one direction.
struct CellTask {
  int64_t hidden;
  int64_t columns;           // units of a block
  int64_t blocks;
  float clip;                // bounds the inputs of activations; infinity: no bound
  GateActivation f[3];       // in the operator's order
  const float* peepholes;    // LSTM: [in, out, forget][hidden], or null
  bool input_forget;         // LSTM
  bool linear_before_reset;  // GRU
};

// One sequence at one step.
struct CellRow {
  float* gates;        // products and biases; GRU: of the state alone for the hidden gate, if linear_before_reset
  const float* input;  // GRU, if linear_before_reset: the hidden gate's product with the input, and its bias
  const float* h;      // [hidden] before
  float* next;         // [hidden] after
  float* c;            // LSTM: [hidden], updated in place
  float* reset;        // GRU, unless linear_before_reset: [hidden], reset gate times h
  float* y;            // a second place for the new state, or null
};

// Each computes the units of blocks b0..b1.
struct RecurrentTable {
  void (*rnn)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  void (*gru_gates)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);  // update, reset; then
  void (*gru)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  void (*lstm)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  // Widens the range low..high so that it holds x[0..n).
  void (*cover)(const float* x, int64_t n, float* low, float* high);
  // Quantizes x to 8 bits with scale and zero point, and writes the numbers that the bytes represent.
  void (*requantize)(const float* x, int64_t n, float scale, float zero, float* out);
};

MGE_CPU_DISPATCH(RecurrentTable, RecurrentCells)

}  // namespace mge::cpu
