// SPDX-License-Identifier: Apache-2.0
// The order of the gates of recurrent operators in packed weights.
#pragma once

#include <cstdint>

#include "mge/plugin/problems/recurrent.hpp"

namespace mge::cpu {

// The column order of packed weights: blocks of `columns` units, the last one padded with zeros. All gates of a block are
// contiguous. For a GRU, the update and reset gates of all blocks come first, then the hidden gates.
struct GateOrder {
  Recurrence::Kind kind = Recurrence::Kind::kRnn;
  int64_t gates = 1, hidden = 0, columns = 1, blocks = 0;

  GateOrder() = default;
  GateOrder(const Recurrence& r, int64_t columns_of_a_panel)
      : kind(r.kind),
        gates(r.gates),
        hidden(r.hidden),
        columns(columns_of_a_panel),
        blocks((r.hidden + columns_of_a_panel - 1) / columns_of_a_panel) {}
  int64_t width() const { return gates * blocks * columns; }  // floats per row of sums
  int64_t Panel(int64_t block, int64_t gate) const {
    if (kind != Recurrence::Kind::kGru) return block * gates + gate;
    return gate < 2 ? block * 2 + gate : blocks * 2 + block;
  }
  // Calls put(column, index in [gates, hidden]) for each column that is not padding.
  template <typename F>
  void ForColumns(F put) const {
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t g = 0; g < gates; ++g) {
        int64_t n = hidden - b * columns < columns ? hidden - b * columns : columns;
        for (int64_t i = 0; i < n; ++i) put(Panel(b, g) * columns + i, g * hidden + b * columns + i);
      }
    }
  }
};

}  // namespace mge::cpu
