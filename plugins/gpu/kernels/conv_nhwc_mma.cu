// SPDX-License-Identifier: Apache-2.0
// Convolutions with the channels last by matrix units, of 16-bit floats and of floats rounded to TF32: the product of the
// windows of all images, which are never stored, and the filter, over up to three spatial axes (phased).
#include "plugins/gpu/kernels/mma_tile.h"
#include "plugins/gpu/kernels/nhwc.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

// Rows are pixels of all images, columns are outputs of a group. Large tiles need groups whose channels and outputs are
// multiples of what one access loads.
template <typename T, typename Tile>
GPU_DEVICE void ConvNhwcMma(const ConvArgs& args) {
  constexpr bool kWhole = Tile::kRows > 64;
  using Rows = WindowLines<T, kWhole>;
  using Columns = FilterLines<T, kWhole>;
  GPU_MMA_TILE(T, Tile, Rows, Columns);
  const Windows32 all(args.axis, args.images);
  const int64_t outputs = args.outputs / args.groups, depth = args.channels / args.groups * all.taps();
  const int64_t across = (outputs + Tile::kColumns - 1) / Tile::kColumns,
                down = (all.pixels + Tile::kRows - 1) / Tile::kRows;
  const bool in_packs = StoresPacks<2>(args);
  for (int64_t u = blockIdx.x; u < across * down * args.groups; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows, group = u / across / down;
    const Rows windows(args, group);
    const Columns filter(args, group, all.taps());
    ComputeMmaTile<T, Tile>(
        GPU_MMA_STATES, windows, filter, row0, column0, depth, [&](float(&sums_of)[2], int64_t row, int64_t column) {
          if (row >= all.pixels || column >= outputs) return;
          const int64_t output = group * outputs + column;
          StorePack<2, T>(args, sums_of, output, row * args.outputs + output, in_packs, outputs - column);
        });
  }
}

GPU_MMA_KERNELS(conv_nhwc_mma, f16, f16, ConvArgs, ConvNhwcMma, 1)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_MMA_KERNELS(conv_nhwc_mma, bf16, bf16, ConvArgs, ConvNhwcMma, 1)
GPU_MMA_KERNELS(conv_nhwc_mma, f32, float, ConvArgs, ConvNhwcMma, 1)
#endif

#endif

}  // namespace mge::gpu
