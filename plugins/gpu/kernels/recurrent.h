// SPDX-License-Identifier: Apache-2.0
// Arguments of the recurrent kernel.
#pragma once

#include <stdint.h>

#include "mge/plugin/gate.hpp"
#include "plugins/gpu/fault.h"

namespace mge::gpu {

enum RecurrentKind : int32_t { kRnn, kGru, kLstm };  // same values as Recurrence::Kind

// All steps of an RNN, GRU or LSTM. A chain is one sequence in one direction. Optional operands may be null.
struct RecurrentArgs {
  const void* sums;     // products of X and W in the compute type: [directions][rows of X][gates * hidden]
  const void* weights;  // R transposed: [directions][hidden][gates * hidden]
  const void* bias;     // [directions][2][gates * hidden]
  const int32_t* lengths;
  const void* initial_h;
  const void* initial_c;
  const void* peepholes;
  void* y;
  void* y_h;
  void* y_c;
  void* work;  // chain_work elements per chain, in the compute type
  Fault* fault;
  int64_t steps, batch, hidden, gates, directions;
  int64_t chain_work;  // result of RecurrentWork()
  int32_t kind, batch_first, reverse, input_forget, linear_before_reset;
  float clip;
  GateActivation f[2][3];  // [direction][function]
};

// Returns the number of elements of `work` per chain: gates, h, c, and for a GRU the state after its reset gate.
inline int64_t RecurrentWork(int32_t kind, int64_t gates, int64_t hidden) {
  return (gates + (kind == kGru ? 3 : 2)) * hidden;
}

}  // namespace mge::gpu
