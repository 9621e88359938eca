// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats by matrix units (mma.h), with float sums (phased).
//
// A block computes one tile of the result in steps of 32 along k. Both factors are staged in shared memory with their rows
// (columns for b) 80 bytes apart, so that the threads of a warp read fragments from 32 different banks. While a step is
// computed, the loads of the next one are on their way into registers.
#include "plugins/gpu/kernels/mma.h"
#include "plugins/gpu/kernels/product.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

constexpr int kStep = 32, kStride = kStep + 8;  // elements along k: of a step, between rows in shared memory

// A tile: warps_down x warps_across warps, each with `down` x `across` fragments of the result.
template <int kDownOf, int kAcrossOf, int kWarpsDownOf, int kWarpsAcrossOf>
struct MmaTile {
  static constexpr int kDown = kDownOf, kAcross = kAcrossOf, kWarpsDown = kWarpsDownOf, kWarpsAcross = kWarpsAcrossOf;
  static constexpr int kRows = 16 * kDown * kWarpsDown, kColumns = 8 * kAcross * kWarpsAcross;
  static constexpr int kThreads = 32 * kWarpsDown * kWarpsAcross;
  static constexpr int kVectors = kRows * kStep / 8 / kThreads;  // per thread, of each factor
  static_assert(kRows == kColumns);
};

// Eight 16-bit elements.
struct alignas(16) Vector8 {
  uint16_t bits[8];
};

// One factor as the tile reads it: lines (rows of a, columns of b) of elements along k.
struct Lines {
  const uint16_t* data;
  int64_t lines, line_stride, k_stride;
  bool along_lines;  // memory is dense across lines: vectors hold one k of eight lines
};

// Returns the place of vector i in the tile's part of a factor.
template <typename Tile>
GPU_DEVICE void PlaceOf(const Lines& of, int i, int thread, int* line, int* k) {
  const int e = thread + i * Tile::kThreads;
  *line = of.along_lines ? e % (Tile::kRows / 8) * 8 : e / (kStep / 8);
  *k = of.along_lines ? e / (Tile::kRows / 8) : e % (kStep / 8) * 8;
}

// Loads a vector: with one access if it is dense, aligned and inside of the matrix, else by element, with zeros outside.
GPU_DEVICE Vector8 LoadVector(const Lines& of, int64_t line, int64_t k, int64_t k_end) {
  const uint16_t* from = of.data + line * of.line_stride + k * of.k_stride;
  const bool inside = of.along_lines ? line + 8 <= of.lines && k < k_end : line < of.lines && k + 8 <= k_end;
  const bool dense = of.along_lines ? of.line_stride == 1 : of.k_stride == 1;
  if (inside && dense && reinterpret_cast<uintptr_t>(from) % 16 == 0) return *reinterpret_cast<const Vector8*>(from);
  Vector8 v;
  GPU_UNROLL for (int i = 0; i < 8; ++i) {
    const int64_t at_line = line + (of.along_lines ? i : 0), at_k = k + (of.along_lines ? 0 : i);
    v.bits[i] = at_line < of.lines && at_k < k_end ? of.data[at_line * of.line_stride + at_k * of.k_stride] : uint16_t{0};
  }
  return v;
}

template <typename Tile>
GPU_DEVICE void LoadStep(const Lines& of, int64_t line0, int64_t k0, int64_t k_end, Vector8 (&to)[Tile::kVectors],
                         int thread) {
  GPU_UNROLL for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile>(of, i, thread, &line, &k);
    to[i] = LoadVector(of, line0 + line, k0 + k, k_end);
  }
}

template <typename Tile>
GPU_DEVICE void StoreStep(const Lines& of, const Vector8 (&from)[Tile::kVectors], uint16_t (*to)[kStride], int thread) {
  GPU_UNROLL for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile>(of, i, thread, &line, &k);
    if (of.along_lines) {
      GPU_UNROLL for (int j = 0; j < 8; ++j) to[line + j][k] = from[i].bits[j];
    } else {
      *reinterpret_cast<Vector8*>(&to[line][k]) = from[i];
    }
  }
}

GPU_DEVICE uint32_t PairAt(const uint16_t* from) { return *reinterpret_cast<const uint32_t*>(from); }

template <typename T, typename Tile>
GPU_DEVICE void MatMulMma(const MatMulArgs& args) {
  GPU_SHARED(Vector8, left_vectors, [Tile::kRows][kStride / 8]);
  GPU_SHARED(Vector8, right_vectors, [Tile::kColumns][kStride / 8]);
  auto* left = reinterpret_cast<uint16_t(*)[kStride]>(left_vectors);
  auto* right = reinterpret_cast<uint16_t(*)[kStride]>(right_vectors);
  GPU_STATE(Vector8, next_left, Tile::kThreads, [Tile::kVectors]);
  GPU_STATE(Vector8, next_right, Tile::kThreads, [Tile::kVectors]);
  GPU_STATE(uint32_t, a, Tile::kThreads, [Tile::kDown][4]);
  GPU_STATE(uint32_t, b, Tile::kThreads, [Tile::kAcross][2]);
  GPU_STATE(float, sums, Tile::kThreads, [Tile::kDown][Tile::kAcross][4]);
  const int64_t across = (args.n + Tile::kColumns - 1) / Tile::kColumns, down = (args.m + Tile::kRows - 1) / Tile::kRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows, batch = u / across / down;
    const BatchOffsets at = OffsetsOf(args, batch);
    const Lines rows = {static_cast<const uint16_t*>(args.a) + at.a, args.m, args.a_row, args.a_k,
                        args.a_row == 1 && args.a_k != 1},
                columns = {static_cast<const uint16_t*>(args.b) + at.b, args.n, args.b_column, args.b_k,
                           args.b_column == 1 && args.b_k != 1};
    GPU_PHASE(t) {
      GPU_UNROLL for (int i = 0; i < Tile::kDown; ++i) {
        GPU_UNROLL for (int j = 0; j < Tile::kAcross; ++j) {
          GPU_UNROLL for (int r = 0; r < 4; ++r) GPU_OWN(sums, t)[i][j][r] = 0;
        }
      }
      LoadStep<Tile>(rows, row0, 0, args.k, GPU_OWN(next_left, t), t);
      LoadStep<Tile>(columns, column0, 0, args.k, GPU_OWN(next_right, t), t);
    }
    for (int64_t k0 = 0; k0 < args.k; k0 += kStep) {
      GPU_PHASE(t) {
        StoreStep<Tile>(rows, GPU_OWN(next_left, t), left, t);
        StoreStep<Tile>(columns, GPU_OWN(next_right, t), right, t);
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        if (k0 + kStep < args.k) {
          LoadStep<Tile>(rows, row0, k0 + kStep, args.k, GPU_OWN(next_left, t), t);
          LoadStep<Tile>(columns, column0, k0 + kStep, args.k, GPU_OWN(next_right, t), t);
        }
      }
      GPU_UNROLL for (int k = 0; k < kStep; k += 16) {
        GPU_PHASE(t) {
          const int warp = t / 32, line = t % 32 / 4, pair = k + t % 4 * 2;
          const int row = warp / Tile::kWarpsAcross * Tile::kDown * 16 + line,
                    column = warp % Tile::kWarpsAcross * Tile::kAcross * 8 + line;
          GPU_UNROLL for (int i = 0; i < Tile::kDown; ++i) {
            GPU_UNROLL for (int r = 0; r < 4; ++r) {
              GPU_OWN(a, t)[i][r] = PairAt(&left[row + 16 * i + 8 * (r % 2)][pair + 8 * (r / 2)]);
            }
          }
          GPU_UNROLL for (int j = 0; j < Tile::kAcross; ++j) {
            GPU_UNROLL for (int r = 0; r < 2; ++r) GPU_OWN(b, t)[j][r] = PairAt(&right[column + 8 * j][pair + 8 * r]);
          }
        }
        GPU_WARP_PHASE(first) {
          GPU_UNROLL for (int i = 0; i < Tile::kDown; ++i) {
            GPU_UNROLL for (int j = 0; j < Tile::kAcross; ++j) {
              MultiplyFragments<T, Tile::kDown, Tile::kAcross>(GPU_LANES(sums, first), GPU_LANES(a, first),
                                                               GPU_LANES(b, first), i, j);
            }
          }
        }
      }
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int warp = t / 32, lane = t % 32;
      GPU_UNROLL for (int i = 0; i < Tile::kDown; ++i) {
        GPU_UNROLL for (int j = 0; j < Tile::kAcross; ++j) {
          GPU_UNROLL for (int r = 0; r < 4; ++r) {
            const int64_t row = row0 + (warp / Tile::kWarpsAcross * Tile::kDown + i) * 16 + lane / 4 + 8 * (r / 2);
            const int64_t column = column0 + (warp % Tile::kWarpsAcross * Tile::kAcross + j) * 8 + lane % 4 * 2 + r % 2;
            if (row >= args.m || column >= args.n) continue;
            static_cast<T*>(args.y)[(batch * args.m + row) * args.n + column] =
                Finished<T>(args, PointersOf(args), at, GPU_OWN(sums, t)[i][j][r], row, column);
          }
        }
      }
    }
  }
}

using LargeTile = MmaTile<4, 4, 2, 4>;  // 128 x 128 outputs
using SmallTile = MmaTile<2, 4, 2, 2>;  // 64 x 64

GPU_PHASED_KERNEL(matmul_mma128_f16, LargeTile::kThreads, MatMulArgs, (MatMulMma<f16, LargeTile>))
GPU_PHASED_KERNEL(matmul_mma64_f16, SmallTile::kThreads, MatMulArgs, (MatMulMma<f16, SmallTile>))
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_PHASED_KERNEL(matmul_mma128_bf16, LargeTile::kThreads, MatMulArgs, (MatMulMma<bf16, LargeTile>))
GPU_PHASED_KERNEL(matmul_mma64_bf16, SmallTile::kThreads, MatMulArgs, (MatMulMma<bf16, SmallTile>))
#endif

#endif

}  // namespace mge::gpu
