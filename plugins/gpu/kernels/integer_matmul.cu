// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 8-bit integers (phased).
#include "plugins/gpu/kernels/integer_product.h"

namespace mge::gpu {

// Right is ByteLines if b is packed, or ByteColumns.
template <typename Right, IntegerResult kResult>
GPU_DEVICE void IntegerMatMul(const IntegerMatMulArgs& args) {
  GPU_INTEGER_TILE(ByteLines, Right);
  const int64_t across = (args.n + kTileColumns - 1) / kTileColumns, down = (args.m + kTileRows - 1) / kTileRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * kTileColumns, row0 = u / across % down * kTileRows;
    const IntegerBatch of(args, u / across / down);
    const IntegerStore<kResult> store(args, of);
    const ByteLines rows = {args.a + of.a, args.m, args.k, SignsOf(args.a_signed)};
    const Right columns = {args.b + of.b, args.n, args.packed ? args.k : args.n, SignsOf(args.b_signed)};
    ComputeIntegerTile(GPU_INTEGER_STATES, rows, columns, row0, column0, args.k,
                       [&](const IntegerSums& sums, int64_t row, int64_t column) {
                         for (int i = 0; i < 4 && row + i < args.m; ++i) {
                           store.Row(row + i, column, sums.products[i], sums.rows[i], sums.columns, args.n - column);
                         }
                       });
  }
}

#define GPU_INTEGER_PRODUCTS(name, kResult)                                                       \
  GPU_PHASED_KERNEL(name, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteColumns, kResult>)) \
  GPU_PHASED_KERNEL(name##_packed, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteLines, kResult>))

GPU_INTEGER_PRODUCTS(integer_matmul, IntegerResult::kSums)
GPU_INTEGER_PRODUCTS(qlinear_matmul, IntegerResult::kQuantized)
GPU_INTEGER_PRODUCTS(scaled_matmul, IntegerResult::kReals)

}  // namespace mge::gpu
