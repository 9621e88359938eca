// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 8-bit integers by matrix units (phased). b is packed.
#include "plugins/gpu/kernels/integer_mma.h"
#include "plugins/gpu/kernels/integer_product.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

template <typename T, typename Tile, IntegerResult kResult>
GPU_DEVICE void MultiplyBytes(const IntegerMatMulArgs& args) {
  using Factor = MmaBytes<ByteLines>;
  GPU_MMA_TILE(T, Tile, Factor, Factor);
  const int64_t across = (args.n + Tile::kColumns - 1) / Tile::kColumns, down = (args.m + Tile::kRows - 1) / Tile::kRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows;
    const IntegerBatch of(args, u / across / down);
    const IntegerStore<kResult> store(args, of);
    const Factor rows = {{args.a + of.a, args.m, args.k, SignsOf(args.a_signed)}},
                 columns = {{args.b + of.b, args.n, args.k, SignsOf(args.b_signed)}};
    ComputeMmaTile<T, Tile>(
        GPU_MMA_STATES, rows, columns, row0, column0, args.k,
        [&](const int32_t(&pair)[2], int64_t row, int64_t column, int32_t total, const int32_t(&totals)[2]) {
          if (row < args.m && column < args.n) store.Row(row, column, pair, total, totals, args.n - column);
        });
  }
}
template <typename T, typename Tile>
GPU_DEVICE void IntegerMatMulMma(const IntegerMatMulArgs& args) {
  MultiplyBytes<T, Tile, IntegerResult::kSums>(args);
}
template <typename T, typename Tile>
GPU_DEVICE void QlinearMatMulMma(const IntegerMatMulArgs& args) {
  MultiplyBytes<T, Tile, IntegerResult::kQuantized>(args);
}
template <typename T, typename Tile>
GPU_DEVICE void ScaledMatMulMma(const IntegerMatMulArgs& args) {
  MultiplyBytes<T, Tile, IntegerResult::kReals>(args);
}

GPU_MMA_KERNELS(integer_matmul_mma, i8, int8_t, IntegerMatMulArgs, IntegerMatMulMma, 1)
GPU_MMA_KERNELS(qlinear_matmul_mma, i8, int8_t, IntegerMatMulArgs, QlinearMatMulMma, 1)
GPU_MMA_KERNELS(scaled_matmul_mma, i8, int8_t, IntegerMatMulArgs, ScaledMatMulMma, 1)

#endif

}  // namespace mge::gpu
