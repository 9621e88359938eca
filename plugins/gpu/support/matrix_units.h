// SPDX-License-Identifier: Apache-2.0
// The kernels that use matrix units (kernels/mma_tile.h): when they can be used, and with which tile.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

inline constexpr double kMatrixUnitsGain = 8;  // about as many times as fast as other instructions

// Returns whether the device's code has kernels for the type.
inline bool HasMatrixUnits(const Problem& p, mge_dtype type) {
  if (type != MGE_DTYPE_F16 && type != MGE_DTYPE_BF16) return false;
  return MatrixCapability(p.handle()) >= (type == MGE_DTYPE_F16 ? 75 : 80);
}

// Chooses the tile. `tiles(n)` returns the number of tiles of n x n outputs. Writes the shape of the launch; returns the
// name of the kernel: "matmul_mma128_f16".
template <typename F>
std::string MatrixUnitsKernel(const std::string& name, mge_dtype type, F&& tiles, Shape3* shape) {
  constexpr int64_t kEnoughLargeTiles = 100;  // fewer leave most of a device idle
  const bool large = tiles(128) >= kEnoughLargeTiles;
  *shape = Rows(tiles(large ? 128 : 64));
  shape->block[0] = large ? 256 : 128;
  return KernelFor(name + (large ? "128" : "64"), type);
}

}  // namespace mge::gpu
