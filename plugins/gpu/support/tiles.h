// SPDX-License-Identifier: Apache-2.0
// Products by tiles of 64 x 64 results without matrix units (kernels/tile.h): estimates, and sums that are cut into parts.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/matmul.h"

namespace mge::gpu {

inline constexpr int64_t kTileSize = 64;

// Returns the time in microseconds of `tiles` tiles, each a sum of `k` terms, apart from the launch. Each is computed by one
// block, so few tiles leave the device idle.
double TilesUs(const Problem& p, int64_t tiles, int64_t k);

// Returns the number of parts into which sums of `k` terms are cut so that `tiles` tiles keep the device busy; 1: none.
int64_t SplitsFor(const Problem& p, int64_t tiles, int64_t k);

// Returns the bytes of the parts of so many results, in the accumulator's type.
uint64_t PartBytes(mge_dtype type, int64_t splits, int64_t results);

// Returns the arguments of matmul_join for the parts of a dense matrix.
MatMulArgs JoinOf(int64_t rows, int64_t columns, int64_t splits);

}  // namespace mge::gpu
