// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit integers with the channels last by matrix units: the product of the windows of all images, which are
// never stored, and the filter, over up to three spatial axes (phased). w is (outputs, window, channels / groups).
#include "plugins/gpu/kernels/integer_mma.h"
#include "plugins/gpu/kernels/integer_windows.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

// Rows are pixels of all images, columns are outputs of a group.
template <typename T, typename Tile, bool kQuantizes>
GPU_DEVICE void ConvolveBytes(const IntegerConvArgs& args) {
  using Rows = MmaBytes<ByteWindows>;
  using Columns = MmaBytes<ByteLines>;
  GPU_MMA_TILE(T, Tile, Rows, Columns);
  const ConvArgs& shape = args.shape;
  const Windows32 all(shape.axis, shape.images);
  const int64_t outputs = shape.outputs / shape.groups, depth = shape.channels / shape.groups * all.taps();
  const int64_t across = (outputs + Tile::kColumns - 1) / Tile::kColumns,
                down = (all.pixels + Tile::kRows - 1) / Tile::kRows;
  for (int64_t u = blockIdx.x; u < across * down * shape.groups; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows, group = u / across / down;
    const Rows windows = {ByteWindows(args, group)};
    const Columns filter = {{args.w + group * outputs * depth, outputs, depth, SignsOf(args.w_signed)}};
    ComputeMmaTile<T, Tile>(
        GPU_MMA_STATES, windows, filter, row0, column0, depth,
        [&](const int32_t(&pair)[2], int64_t row, int64_t column, int32_t total, const int32_t(&totals)[2]) {
          if (row >= all.pixels || column >= outputs) return;
          StoreOutputs<kQuantizes>(args, pair, total, totals, row, group * outputs + column, outputs - column, depth);
        });
  }
}
template <typename T, typename Tile>
GPU_DEVICE void IntegerConvMma(const IntegerConvArgs& args) {
  ConvolveBytes<T, Tile, false>(args);
}
template <typename T, typename Tile>
GPU_DEVICE void QlinearConvMma(const IntegerConvArgs& args) {
  ConvolveBytes<T, Tile, true>(args);
}

GPU_MMA_KERNELS(integer_conv_nhwc_mma, i8, int8_t, IntegerConvArgs, IntegerConvMma, 1)
GPU_MMA_KERNELS(qlinear_conv_nhwc_mma, i8, int8_t, IntegerConvArgs, QlinearConvMma, 1)

#endif

}  // namespace mge::gpu
