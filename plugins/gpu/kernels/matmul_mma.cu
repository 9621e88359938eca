// SPDX-License-Identifier: Apache-2.0
// Products by matrix units of 16-bit floats, and of floats rounded to TF32, with float sums (phased).
#include "plugins/gpu/kernels/mma_tile.h"
#include "plugins/gpu/kernels/product.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

template <typename T, typename Tile>
GPU_DEVICE void MatMulMma(const MatMulArgs& args) {
  GPU_MMA_TILE(T, Tile, Lines<T>, Lines<T>);
  const int64_t across = (args.n + Tile::kColumns - 1) / Tile::kColumns, down = (args.m + Tile::kRows - 1) / Tile::kRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows, batch = u / across / down;
    const BatchOffsets at = OffsetsOf(args, batch);
    const Lines<T> rows = {static_cast<const T*>(args.a) + at.a, args.m, args.a_row, args.a_k,
                           args.a_row == 1 && args.a_k != 1},
                   columns = {static_cast<const T*>(args.b) + at.b, args.n, args.b_column, args.b_k,
                              args.b_column == 1 && args.b_k != 1};
    ComputeMmaTile<T, Tile>(GPU_MMA_STATES, rows, columns, row0, column0, args.k,
                            [&](const float(&sums_of)[2], int64_t row, int64_t column) {
                              GPU_UNROLL for (int i = 0; i < 2; ++i, ++column) {
                                if (row >= args.m || column >= args.n) return;
                                static_cast<T*>(args.y)[(batch * args.m + row) * args.n + column] =
                                    Finished<T>(args, PointersOf(args), at, sums_of[i], row, column);
                              }
                            });
  }
}

GPU_MMA_KERNELS(matmul_mma, f16, f16, MatMulArgs, MatMulMma)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_MMA_KERNELS(matmul_mma, bf16, bf16, MatMulArgs, MatMulMma)
GPU_MMA_KERNELS(matmul_mma, f32, float, MatMulArgs, MatMulMma)
#endif

#endif

}  // namespace mge::gpu
