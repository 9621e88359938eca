// SPDX-License-Identifier: Apache-2.0
// Factors of 8-bit integers for tiles of matrix units (mma_tile.h). Included by phased kernels only.
#pragma once

#include "plugins/gpu/kernels/integer_tile.h"
#include "plugins/gpu/kernels/mma_tile.h"

namespace mge::gpu {

// A factor of integer_tile.h whose words lie along k.
template <typename Factor>
struct MmaBytes {
  struct Line {
    typename Factor::Line line;
    int32_t total;
  };
  static constexpr bool along_lines = false;
  Factor of;

  GPU_DEVICE Line LineAt(int64_t line) const { return {of.LineAt(line), 0}; }
  template <int N>
  GPU_DEVICE Pack<int8_t, N> Load(Line& line, int64_t k, int64_t depth) const {
    const Words words = of.Load(line.line, k, depth);
    GPU_UNROLL for (int i = 0; i < 4; ++i) line.total = DotOfBytes(words.at[i], 0x01010101u, line.total);
    return BitCast<Pack<int8_t, N>>(words);
  }
};

}  // namespace mge::gpu
