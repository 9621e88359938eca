// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 8-bit integers (phased): MatMulInteger, with int32 results, and QLinearMatMul.
#include "plugins/gpu/kernels/integer_matmul.h"
#include "plugins/gpu/kernels/integer_tile.h"
#include "plugins/gpu/kernels/quantization.h"
#include "plugins/gpu/kernels/scales.h"

namespace mge::gpu {

// The first elements of the operands and parameters of a batch index.
struct IntegerBatch {
  int64_t a, b, a_zero, b_zero, a_scale, b_scale;

  GPU_DEVICE IntegerBatch(const IntegerMatMulArgs& args, int64_t batch)
      : a(0), b(0), a_zero(0), b_zero(0), a_scale(0), b_scale(0) {
    for (int d = args.batch_rank - 1; d >= 0; --d) {
      const int64_t q = batch / args.batch_dims[d], at = batch - q * args.batch_dims[d];
      a += at * args.a_batch[d];
      b += at * args.b_batch[d];
      a_zero += at * args.a_zero_of.batch[d];
      b_zero += at * args.b_zero_of.batch[d];
      a_scale += at * args.a_scale_of.batch[d];
      b_scale += at * args.b_scale_of.batch[d];
      batch = q;
    }
  }
};

// Stores the results of a thread of the tile: sums, or if kQuantizes, quantized numbers.
template <bool kQuantizes>
GPU_DEVICE void StoreIntegers(const IntegerMatMulArgs& args, const IntegerBatch& of, int64_t batch, const IntegerSums& sums,
                              int64_t row0, int64_t column0) {
  const uint32_t a_signs = SignsOf(args.a_signed), b_signs = SignsOf(args.b_signed);
  int32_t column_zeros[4] = {};
  float column_scales[4] = {}, y_scale = 0;
  int32_t lowest = 0, zero = 0;
  GPU_UNROLL for (int j = 0; j < 4; ++j) {
    if (column0 + j >= args.n) break;
    column_zeros[j] = ZeroAt(args.b_zero, of.b_zero + (column0 + j) * args.b_zero_of.line, b_signs);
    if (kQuantizes)
      column_scales[j] = ScaleAt(args.b_scale, args.scale_type, of.b_scale + (column0 + j) * args.b_scale_of.line);
  }
  if (kQuantizes) {
    y_scale = ScaleAt(args.y_scale, args.scale_type, 0);
    lowest = args.y_signed ? -128 : 0;
    zero = args.y_signed ? static_cast<int8_t>(*args.y_zero) : *args.y_zero;
  }
  for (int i = 0; i < 4 && row0 + i < args.m; ++i) {
    const int64_t row = row0 + i, place = (batch * args.m + row) * args.n + column0;
    const int32_t row_zero = ZeroAt(args.a_zero, of.a_zero + row * args.a_zero_of.line, a_signs);
    Pack<int32_t, 4> y;
    GPU_UNROLL for (int j = 0; j < 4; ++j) {
      y.at[j] = Centred(sums.products[i][j], sums.rows[i], sums.columns[j], row_zero, column_zeros[j], args.k);
    }
    if constexpr (kQuantizes) {
      const float row_scale = ScaleAt(args.a_scale, args.scale_type, of.a_scale + row * args.a_scale_of.line);
      Pack<uint8_t, 4> bytes;
      GPU_UNROLL for (int j = 0; j < 4; ++j) {
        const float real = static_cast<float>(y.at[j]) * (row_scale * column_scales[j] / y_scale);
        bytes.at[j] = static_cast<uint8_t>(SaturatedTo(lowest, lowest + 255, real, zero));
      }
      StoreFour(static_cast<uint8_t*>(args.y) + place, bytes, args.n - column0);
    } else {
      StoreFour(static_cast<int32_t*>(args.y) + place, y, args.n - column0);
    }
  }
}

// Right is ByteLines if b is packed, or ByteColumns.
template <typename Right, bool kQuantizes>
GPU_DEVICE void IntegerMatMul(const IntegerMatMulArgs& args) {
  GPU_INTEGER_TILE(ByteLines, Right);
  const int64_t across = (args.n + kTileColumns - 1) / kTileColumns, down = (args.m + kTileRows - 1) / kTileRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * kTileColumns, row0 = u / across % down * kTileRows, batch = u / across / down;
    const IntegerBatch of(args, batch);
    const ByteLines rows = {args.a + of.a, args.m, args.k, SignsOf(args.a_signed)};
    const Right columns = {args.b + of.b, args.n, args.packed ? args.k : args.n, SignsOf(args.b_signed)};
    ComputeIntegerTile(GPU_INTEGER_STATES, rows, columns, row0, column0, args.k,
                       [&](const IntegerSums& sums, int64_t row, int64_t column) {
                         StoreIntegers<kQuantizes>(args, of, batch, sums, row, column);
                       });
  }
}

GPU_PHASED_KERNEL(integer_matmul, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteColumns, false>))
GPU_PHASED_KERNEL(integer_matmul_packed, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteLines, false>))
GPU_PHASED_KERNEL(qlinear_matmul, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteColumns, true>))
GPU_PHASED_KERNEL(qlinear_matmul_packed, kTileThreads, IntegerMatMulArgs, (IntegerMatMul<ByteLines, true>))

}  // namespace mge::gpu
