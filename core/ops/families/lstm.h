// SPDX-License-Identifier: Apache-2.0
// The cell of LSTM and DynamicQuantizeLSTM.
#pragma once

#include "core/ops/families/recurrent.h"

namespace mge {

// Computes one step. The gates of biases and weights are in the order input, output, forget, cell. The peepholes are in
// the order input, output, forget.
template <typename A>
void StepLstm(const RecurrentCell<A>& cell, const RecurrentStep<A>& s, bool input_forget) {
  enum Gate { kIn, kOut, kForget, kCell };
  const int64_t n = cell.r.hidden;
  for (int gate : {kIn, kOut, kForget, kCell}) {
    for (int64_t i = 0; i < n; ++i) s.gates[gate * n + i] += cell.Recur(gate, i, s.seen) + cell.Bias(gate, i);
  }
  auto peep = [&](int which, int64_t i) { return cell.peepholes ? cell.peepholes[which * n + i] * s.c[i] : A(0); };
  for (int64_t i = 0; i < n; ++i) {
    const A in = cell.Activate(0, s.gates[kIn * n + i] + peep(0, i));
    const A forget = input_forget ? 1 - in : cell.Activate(0, s.gates[kForget * n + i] + peep(2, i));
    s.c[i] = forget * s.c[i] + in * cell.Activate(1, s.gates[kCell * n + i]);
    const A out = cell.Activate(0, s.gates[kOut * n + i] + peep(1, i));
    s.h[i] = out * cell.Unclipped(2, s.c[i]);  // the clip limits gates only, as in ONNX Runtime and OpenVINO
  }
}

}  // namespace mge
