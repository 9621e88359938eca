// SPDX-License-Identifier: Apache-2.0
// Estimates of products by tiles of 64 x 64 results without matrix units (kernels/tile.h).
#pragma once

#include "mge/plugin.hpp"

namespace mge::gpu {

inline constexpr int64_t kTileSize = 64;

// Returns the time in microseconds of `tiles` tiles, each a sum of `k` terms, apart from the launch. Each is computed by one
// block, so few tiles leave the device idle.
double TilesUs(const Problem& p, int64_t tiles, int64_t k);

// Returns the number of parts into which sums of `k` terms are cut so that `tiles` tiles keep the device busy; 1: none.
int64_t SplitsFor(const Problem& p, int64_t tiles, int64_t k);

}  // namespace mge::gpu
