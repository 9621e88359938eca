// SPDX-License-Identifier: Apache-2.0
// The tile used by matrix products and convolutions: 256 threads compute 64 x 64 outputs, 4 x 4 each, in steps of 16 along
// k. Included by kernels only.
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

constexpr int kTileRows = 64, kTileColumns = 64, kTileK = 16, kTilePad = 4, kTileThreads = 256;

template <typename C>
using TileA = C[kTileK][kTileRows + kTilePad];
template <typename C>
using TileB = C[kTileK][kTileColumns];

// Adds the product of the two shared tiles to a thread's 4 x 4 sums. Right is TileA<C> or TileB<C>.
template <typename C, typename Right>
GPU_DEVICE void MultiplyTile(C (&sum)[4][4], const TileA<C>& a, const Right& b, int thread) {
  const int row = thread / 16 * 4, column = thread % 16 * 4;
  GPU_UNROLL for (int k = 0; k < kTileK; ++k) {
    C left[4], right[4];
    GPU_UNROLL for (int i = 0; i < 4; ++i) left[i] = a[k][row + i];
    GPU_UNROLL for (int j = 0; j < 4; ++j) right[j] = b[k][column + j];
    GPU_UNROLL for (int i = 0; i < 4; ++i) { GPU_UNROLL for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j]; }
  }
}

}  // namespace mge::gpu
