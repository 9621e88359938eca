// SPDX-License-Identifier: Apache-2.0
// The kernels that use matrix units (kernels/mma_tile.h): when they can be used, and with which tile.
#pragma once

#include <climits>
#include <cstdint>
#include <string>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/roofs.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

// Returns about how many times as fast they are as other instructions.
inline double MatrixUnitsGain(const Problem& p, mge_dtype type) {
  const Roofs roofs = RoofsOf(p.handle());
  const double of_type = type == MGE_DTYPE_F32 ? 0.5 : type == MGE_DTYPE_I8 ? 2 : 1;
  return roofs.matrix_operations_per_us / roofs.operations_per_us * of_type;
}

// A dot product of four bytes without them takes somewhat longer than an operation of floats, and counts as eight operations,
// not two.
inline constexpr double kGainOfBytes = 3;

// Returns whether the device's code has kernels for the type. Floats are rounded to TF32. int8 stands for uint8, too.
inline bool HasMatrixUnits(const Problem& p, mge_dtype type) {
  const int least = type == MGE_DTYPE_F16 || type == MGE_DTYPE_I8     ? 75
                    : type == MGE_DTYPE_BF16 || type == MGE_DTYPE_F32 ? 80
                                                                      : INT_MAX;
  return MatrixCapability(p.handle()) >= least;
}
inline uint64_t MatrixUnitsAttributes(mge_dtype type) {
  return kExact | MGE_KERNEL_TENSOR_CORE | (type == MGE_DTYPE_F32 ? MGE_KERNEL_REDUCED_PRECISION : 0);
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
