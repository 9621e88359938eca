// SPDX-License-Identifier: Apache-2.0
// Products by matrix units of 16-bit floats, and of floats rounded to TF32, with float sums (phased): whole, split along k,
// and of one matrix with several.
#include "plugins/gpu/kernels/mma_tile.h"
#include "plugins/gpu/kernels/product.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

// Computes tile u of the products of all batches. If kParts, also of all parts of k, and stores the sums without an
// epilogue.
template <typename T, typename Tile, bool kParts, typename... States>
GPU_DEVICE void ComputeProductTile(const MatMulArgs& args, const ProductPointers& of, int64_t u, States&... states) {
  const int64_t across = (args.n + Tile::kColumns - 1) / Tile::kColumns, down = (args.m + Tile::kRows - 1) / Tile::kRows;
  const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows;
  const int64_t batch = u / across / down % args.batch;
  int64_t begin = 0, end = args.k;
  T* y = static_cast<T*>(of.y);
  float* sums = nullptr;  // of the part and the batch
  if constexpr (kParts) {
    const int64_t part = u / across / down / args.batch;
    const int64_t each = ((args.k + args.splits - 1) / args.splits + kStep<T> - 1) / kStep<T> * kStep<T>;
    begin = part * each < args.k ? part * each : args.k;
    end = begin + each < args.k ? begin + each : args.k;
    sums = static_cast<float*>(of.y) + (part * args.batch + batch) * args.m * args.n;
  }
  const BatchOffsets at = OffsetsOf(args, batch);
  const Lines<T> rows = {static_cast<const T*>(of.a) + at.a + begin * args.a_k, args.m, args.a_row, args.a_k,
                         args.a_row == 1 && args.a_k != 1},
                 columns = {static_cast<const T*>(of.b) + at.b + begin * args.b_k, args.n, args.b_column, args.b_k,
                            args.b_column == 1 && args.b_k != 1};
  ComputeMmaTile<T, Tile>(states..., rows, columns, row0, column0, end - begin,
                          [&](const float(&pair)[2], int64_t row, int64_t column) {
                            GPU_UNROLL for (int i = 0; i < 2; ++i, ++column) {
                              if (row >= args.m || column >= args.n) return;
                              const int64_t place = (batch * args.m + row) * args.n + column;
                              if constexpr (kParts)
                                sums[row * args.n + column] = pair[i];
                              else
                                y[place] = Finished<T>(args, of, at, pair[i], row, column, place);
                            }
                          });
}
template <typename Tile>
GPU_DEVICE int64_t TilesOf(const MatMulArgs& args) {
  return (args.n + Tile::kColumns - 1) / Tile::kColumns * ((args.m + Tile::kRows - 1) / Tile::kRows) * args.batch;
}

template <typename T, typename Tile, bool kParts>
GPU_DEVICE void MultiplyTiles(const MatMulArgs& args) {
  GPU_MMA_TILE(T, Tile, Lines<T>, Lines<T>);
  const int64_t tiles = TilesOf<Tile>(args) * (kParts ? args.splits : 1);
  for (int64_t u = blockIdx.x; u < tiles; u += gridDim.x) {
    ComputeProductTile<T, Tile, kParts>(args, PointersOf(args), u, GPU_MMA_STATES);
  }
}
template <typename T, typename Tile>
GPU_DEVICE void MatMulMma(const MatMulArgs& args) {
  MultiplyTiles<T, Tile, false>(args);
}
template <typename T, typename Tile>
GPU_DEVICE void MatMulSiblingsMma(const SiblingsArgs& args) {
  GPU_MMA_TILE(T, Tile, Lines<T>, Lines<T>);
  const int64_t tiles = TilesOf<Tile>(args.product);
  for (int64_t u = blockIdx.x; u < tiles * args.count; u += gridDim.x) {
    const int64_t i = u / tiles;
    const ProductPointers of = {args.a, args.b[i], nullptr, args.bias[i], nullptr, args.y[i], nullptr};
    ComputeProductTile<T, Tile, false>(args.product, of, u - i * tiles, GPU_MMA_STATES);
  }
}

// Products are split only if they have few tiles, so the parts have small ones.
#define GPU_MMA_PRODUCTS(type, T)                                                                                         \
  GPU_MMA_KERNELS(matmul_mma, type, T, MatMulArgs, MatMulMma, sizeof(T) == 2 ? 2 : 1)                                     \
  GPU_PHASED_KERNEL(matmul_part_mma64_##type, SmallMmaTile::kThreads, MatMulArgs, (MultiplyTiles<T, SmallMmaTile, true>)) \
  GPU_MMA_KERNELS(matmul_siblings_mma, type, T, SiblingsArgs, MatMulSiblingsMma, sizeof(T) == 2 ? 2 : 1)

GPU_MMA_PRODUCTS(f16, f16)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_MMA_PRODUCTS(bf16, bf16)
GPU_MMA_PRODUCTS(f32, float)
#endif

#endif

}  // namespace mge::gpu
