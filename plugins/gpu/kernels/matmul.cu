// SPDX-License-Identifier: Apache-2.0
// Matrix products: tiled (phased), tiled and split along k, of one matrix with several, with bfloat16 factors, and without
// tiles for integers.
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/kernels/product.h"
#include "plugins/gpu/kernels/tile.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Factors in the compute type of T.
template <typename T>
struct AsItIs {
  static GPU_DEVICE Compute<T> Of(T x) { return Widen(x); }
};
// Factors rounded to bfloat16, as in a tensor core; sums stay float.
struct AsBf16 {
  static GPU_DEVICE float Of(float x) { return Widen(NarrowToBf16(x)); }
};

// The elements of a step of both factors that a thread loads.
constexpr int kLoads = kTileRows * kTileK / kTileThreads;
static_assert(kTileRows == kTileColumns);
template <typename C>
using Loaded = C[2][kLoads];

// Loads elements of steps [k0, k0 + kTileK), and zeros from k1 on.
template <typename T, typename Factor, typename C>
GPU_DEVICE void LoadStep(const MatMulArgs& args, const ProductPointers& of, const BatchOffsets& at, Loaded<C>& to,
                         int64_t row0, int64_t column0, int64_t k0, int64_t k1, int thread) {
  const T* __restrict__ left = static_cast<const T*>(of.a) + at.a;
  const T* __restrict__ right = static_cast<const T*>(of.b) + at.b;
  GPU_UNROLL for (int i = 0; i < kLoads; ++i) {
    const int e = thread + i * kTileThreads, row = e / kTileK, k = e % kTileK;
    to[0][i] = row0 + row < args.m && k0 + k < k1 ? Factor::Of(left[(row0 + row) * args.a_row + (k0 + k) * args.a_k]) : C(0);
  }
  GPU_UNROLL for (int i = 0; i < kLoads; ++i) {
    const int e = thread + i * kTileThreads, k = e / kTileColumns, column = e % kTileColumns;
    to[1][i] = column0 + column < args.n && k0 + k < k1
                   ? Factor::Of(right[(k0 + k) * args.b_k + (column0 + column) * args.b_column])
                   : C(0);
  }
}
// Stores them in the shared tiles.
template <typename C>
GPU_DEVICE void StoreStep(const Loaded<C>& from, TileA<C>& a, TileB<C>& b, int thread) {
  GPU_UNROLL for (int i = 0; i < kLoads; ++i) {
    const int e = thread + i * kTileThreads;
    a[e % kTileK][e / kTileK] = from[0][i];
    b[e / kTileColumns][e % kTileColumns] = from[1][i];
  }
}

// Computes tile u of the products of all batches. If Parts, also of all parts of k, and stores the sums without an epilogue.
// The loads of a step are in flight while the step before is computed.
template <typename T, typename Factor, bool Parts, typename C, typename Sums, typename Loads>
GPU_DEVICE void ComputeTile(const MatMulArgs& args, const ProductPointers& of, int64_t u, TileA<C>& a, TileB<C>& b,
                            Sums& sums, Loads& loaded) {
  const int64_t across = (args.n + kTileColumns - 1) / kTileColumns, down = (args.m + kTileRows - 1) / kTileRows;
  const int64_t parts = Parts ? args.splits : 1, each = (args.k + parts - 1) / parts;
  const int64_t column0 = u % across * kTileColumns, row0 = u / across % down * kTileRows;
  const int64_t batch = u / across / down % args.batch, part = u / across / down / args.batch;
  const int64_t begin = part * each, end = begin + each < args.k ? begin + each : args.k;
  const BatchOffsets at = OffsetsOf(args, batch);
  GPU_PHASE(t) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) GPU_OWN(sums, t)[i][j] = C(0);
    }
    LoadStep<T, Factor, C>(args, of, at, GPU_OWN(loaded, t), row0, column0, begin, end, t);
  }
  for (int64_t k0 = begin; k0 < end; k0 += kTileK) {
    GPU_PHASE(t) StoreStep<C>(GPU_OWN(loaded, t), a, b, t);
    GPU_BARRIER();
    GPU_PHASE(t) {
      if (k0 + kTileK < end) {
        LoadStep<T, Factor, C>(args, of, at, GPU_OWN(loaded, t), row0, column0, k0 + kTileK, end, t);
      }
      MultiplyTile<C>(GPU_OWN(sums, t), a, b, t);
    }
    GPU_BARRIER();
  }
  GPU_PHASE(t) {
    const int64_t row1 = row0 + t / 16 * 4, column1 = column0 + t % 16 * 4;
    for (int64_t row = row1; row < row1 + 4 && row < args.m; ++row) {
      for (int64_t column = column1; column < column1 + 4 && column < args.n; ++column) {
        const C sum = GPU_OWN(sums, t)[row - row1][column - column1];
        const int64_t place = (batch * args.m + row) * args.n + column;
        if (Parts)
          static_cast<C*>(of.y)[part * args.batch * args.m * args.n + place] = sum;
        else
          static_cast<T*>(of.y)[place] = Finished<T>(args, of, at, sum, row, column, place);
      }
    }
  }
}
GPU_DEVICE int64_t TilesOf(const MatMulArgs& args) {
  return (args.n + kTileColumns - 1) / kTileColumns * ((args.m + kTileRows - 1) / kTileRows) * args.batch;
}

template <typename T, typename Factor, bool Parts>
GPU_DEVICE void MatMul(const MatMulArgs& args) {
  using C = Compute<T>;
  GPU_SHARED(C, a, [kTileK][kTileRows + kTilePad]);
  GPU_SHARED(C, b, [kTileK][kTileColumns]);
  GPU_STATE(C, sums, kTileThreads, [4][4]);
  GPU_STATE(C, loaded, kTileThreads, [2][kLoads]);
  const int64_t tiles = TilesOf(args) * (Parts ? args.splits : 1);
  for (int64_t u = blockIdx.x; u < tiles; u += gridDim.x) {
    ComputeTile<T, Factor, Parts>(args, PointersOf(args), u, a, b, sums, loaded);
  }
}

template <typename T>
GPU_DEVICE void MatMulSiblings(const SiblingsArgs& args) {
  using C = Compute<T>;
  GPU_SHARED(C, a, [kTileK][kTileRows + kTilePad]);
  GPU_SHARED(C, b, [kTileK][kTileColumns]);
  GPU_STATE(C, sums, kTileThreads, [4][4]);
  GPU_STATE(C, loaded, kTileThreads, [2][kLoads]);
  const int64_t tiles = TilesOf(args.product);
  for (int64_t u = blockIdx.x; u < tiles * args.count; u += gridDim.x) {
    const int64_t i = u / tiles;
    const ProductPointers of = {args.a, args.b[i], nullptr, args.bias[i], nullptr, args.y[i], nullptr};
    ComputeTile<T, AsItIs<T>, false>(args.product, of, u - i * tiles, a, b, sums, loaded);
  }
}

// Adds the parts in their order and applies the epilogue.
template <typename T>
GPU_DEVICE void JoinParts(const MatMulArgs& args) {
  using C = Compute<T>;
  const C* __restrict__ parts = static_cast<const C*>(args.a);
  const int64_t n = args.batch * args.m * args.n;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    C sum = 0;
    for (int64_t s = 0; s < args.splits; ++s) sum += parts[s * n + i];
    const int64_t column = i % args.n, row = i / args.n % args.m;
    static_cast<T*>(args.y)[i] =
        Finished<T>(args, PointersOf(args), OffsetsOf(args, i / args.n / args.m), sum, row, column, i);
  }
}

// Computes one output per thread. Integers wrap around.
template <typename T>
GPU_DEVICE void MatMulPlain(const MatMulArgs& args) {
  const int64_t n = args.batch * args.m * args.n;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const int64_t column = i % args.n, row = i / args.n % args.m;
    const BatchOffsets at = OffsetsOf(args, i / args.n / args.m);
    const T* a = static_cast<const T*>(args.a) + at.a + row * args.a_row;
    const T* b = static_cast<const T*>(args.b) + at.b + column * args.b_column;
    T sum = 0;
    for (int64_t k = 0; k < args.k; ++k) sum += a[k * args.a_k] * b[k * args.b_k];
    static_cast<T*>(args.y)[i] = sum;
  }
}

#define GPU_PRODUCTS(type, T)                                                                   \
  GPU_PHASED_KERNEL(matmul_##type, kTileThreads, MatMulArgs, (MatMul<T, AsItIs<T>, false>))     \
  GPU_PHASED_KERNEL(matmul_part_##type, kTileThreads, MatMulArgs, (MatMul<T, AsItIs<T>, true>)) \
  GPU_KERNEL(matmul_join_##type, 256, MatMulArgs, JoinParts<T>)

GPU_PRODUCTS(f32, float)
GPU_PRODUCTS(f64, double)
GPU_PRODUCTS(f16, f16)
GPU_PRODUCTS(bf16, bf16)
GPU_PHASED_KERNEL(matmul_siblings_f32, kTileThreads, SiblingsArgs, MatMulSiblings<float>)
GPU_PHASED_KERNEL(matmul_siblings_f16, kTileThreads, SiblingsArgs, MatMulSiblings<f16>)
GPU_PHASED_KERNEL(matmul_siblings_bf16, kTileThreads, SiblingsArgs, MatMulSiblings<bf16>)
GPU_PHASED_KERNEL(matmul_as_bf16_f32, kTileThreads, MatMulArgs, (MatMul<float, AsBf16, false>))
GPU_KERNEL(matmul_plain_u32, 256, MatMulArgs, MatMulPlain<uint32_t>)  // also int32
GPU_KERNEL(matmul_plain_u64, 256, MatMulArgs, MatMulPlain<uint64_t>)  // also int64

}  // namespace mge::gpu
