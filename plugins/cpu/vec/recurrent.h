// SPDX-License-Identifier: Apache-2.0
// The cells of RNN, GRU and LSTM: the work after the products of one step.
//
// The sums of the gates of one sequence are in blocks of `columns` units, with one panel of packed weights per gate (see
// support/gate_order.h for the order). So a range of blocks contains every gate of its units.
#pragma once

#include "mge/plugin/gate.hpp"
#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// The parameters of one direction.
struct CellTask {
  int64_t hidden;
  int64_t columns;  // units per block
  int64_t blocks;
  float clip;                // limit for the inputs of activations; infinity: none
  GateActivation f[3];       // in the operator's order
  const float* peepholes;    // LSTM: [in, out, forget][hidden], or null
  bool input_forget;         // LSTM
  bool linear_before_reset;  // GRU
};

// One sequence at one step.
struct CellRow {
  float* gates;        // products and biases; GRU with linear_before_reset: for the hidden gate, those of the state only
  const float* input;  // GRU with linear_before_reset: the hidden gate's product with the input, plus its bias
  const float* h;      // [hidden] state before the step
  float* next;         // [hidden] state after the step
  float* c;            // LSTM: [hidden], updated in place
  float* reset;        // GRU without linear_before_reset: [hidden], reset gate times h
  float* y;            // second destination of the new state, or null
};

// Each function computes the units of blocks b0..b1.
struct RecurrentTable {
  void (*rnn)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  void (*gru_gates)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);  // first: update and reset gates
  void (*gru)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  void (*lstm)(const CellTask&, const CellRow&, int64_t b0, int64_t b1);
  // Widens the range low..high to include x[0..n).
  void (*cover)(const float* x, int64_t n, float* low, float* high);
  // Quantizes x to 8 bits with scale and zero point, and writes the numbers that the bytes represent.
  void (*requantize)(const float* x, int64_t n, float scale, float zero, float* out);
};

MGE_CPU_DISPATCH(RecurrentTable, RecurrentCells)

}  // namespace mge::cpu
