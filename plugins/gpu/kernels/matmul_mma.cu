// SPDX-License-Identifier: Apache-2.0
// Products by matrix units (mma.h) of 16-bit floats, and of floats rounded to TF32, with float sums (phased).
//
// A block computes one tile of the result in steps of 64 bytes along k. Both factors are staged in shared memory with their
// rows (columns for b) 80 bytes apart, so that the threads of a warp read fragments from 32 different banks. While a step is
// computed, the loads of the next one are on their way into registers.
#include "plugins/gpu/kernels/mma.h"
#include "plugins/gpu/kernels/product.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

constexpr int kStepVectors = 4, kLineVectors = 5;  // vectors of 16 bytes along k: of a step, between rows in shared memory
constexpr int kStepWords = 16;                     // registers of a fragment along k, in a step
template <typename T>
constexpr int kEach = 16 / sizeof(T);  // elements of a vector
template <typename T>
constexpr int kStep = kStepVectors* kEach<T>;

// A tile: warps_down x warps_across warps, each with `down` x `across` fragments of the result.
template <int kDownOf, int kAcrossOf, int kWarpsDownOf, int kWarpsAcrossOf>
struct MmaTile {
  static constexpr int kDown = kDownOf, kAcross = kAcrossOf, kWarpsDown = kWarpsDownOf, kWarpsAcross = kWarpsAcrossOf;
  static constexpr int kRows = 16 * kDown * kWarpsDown, kColumns = 8 * kAcross * kWarpsAcross;
  static constexpr int kThreads = 32 * kWarpsDown * kWarpsAcross;
  static constexpr int kVectors = kRows * kStepVectors / kThreads;  // per thread, of each factor
  static_assert(kRows == kColumns);
};

template <typename T>
struct alignas(16) Vector {
  T at[kEach<T>];
};

// One factor as the tile reads it: lines (rows of a, columns of b) of elements along k.
template <typename T>
struct Lines {
  const T* data;
  int64_t lines, line_stride, k_stride;
  bool along_lines;  // memory is dense across lines: vectors hold one k of several lines
};

// Returns the place of vector i in the tile's part of a factor.
template <typename Tile, typename T>
GPU_DEVICE void PlaceOf(const Lines<T>& of, int i, int thread, int* line, int* k) {
  constexpr int kLines = Tile::kRows / kEach<T>;  // vectors across lines
  const int e = thread + i * Tile::kThreads;
  *line = of.along_lines ? e % kLines * kEach<T> : e / kStepVectors;
  *k = of.along_lines ? e / kLines : e % kStepVectors * kEach<T>;
}

// Loads a vector: with one access if it is dense, aligned and inside of the matrix, else by element, with zeros outside.
template <typename T>
GPU_DEVICE Vector<T> LoadVector(const Lines<T>& of, int64_t line, int64_t k, int64_t k_end) {
  const T* from = of.data + line * of.line_stride + k * of.k_stride;
  const bool inside = of.along_lines ? line + kEach<T> <= of.lines && k < k_end : line < of.lines && k + kEach<T> <= k_end;
  const bool dense = of.along_lines ? of.line_stride == 1 : of.k_stride == 1;
  if (inside && dense && reinterpret_cast<uintptr_t>(from) % 16 == 0) return *reinterpret_cast<const Vector<T>*>(from);
  Vector<T> v;
  GPU_UNROLL for (int i = 0; i < kEach<T>; ++i) {
    const int64_t at_line = line + (of.along_lines ? i : 0), at_k = k + (of.along_lines ? 0 : i);
    v.at[i] = at_line < of.lines && at_k < k_end ? of.data[at_line * of.line_stride + at_k * of.k_stride] : T{};
  }
  return v;
}

template <typename Tile, typename T>
GPU_DEVICE void LoadStep(const Lines<T>& of, int64_t line0, int64_t k0, int64_t k_end, Vector<T> (&to)[Tile::kVectors],
                         int thread) {
  GPU_UNROLL for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile>(of, i, thread, &line, &k);
    to[i] = LoadVector(of, line0 + line, k0 + k, k_end);
  }
}

template <typename Tile, typename T>
GPU_DEVICE void StoreStep(const Lines<T>& of, Vector<T> (&from)[Tile::kVectors], Vector<T> (*to)[kLineVectors], int thread) {
  GPU_UNROLL for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile>(of, i, thread, &line, &k);
    if constexpr (sizeof(T) == 4) {
      GPU_UNROLL for (int j = 0; j < kEach<T>; ++j) from[i].at[j] = RoundToTf32(from[i].at[j]);
    }
    if (of.along_lines) {
      GPU_UNROLL for (int j = 0; j < kEach<T>; ++j) reinterpret_cast<T*>(to[line + j])[k] = from[i].at[j];
    } else {
      to[line][k / kEach<T>] = from[i];
    }
  }
}

// Returns the register at word `word` of a line.
template <typename T>
GPU_DEVICE uint32_t WordAt(const Vector<T> (&line)[kLineVectors], int word) {
  return reinterpret_cast<const uint32_t*>(line)[word];
}

template <typename T, typename Tile>
GPU_DEVICE void MatMulMma(const MatMulArgs& args) {
  GPU_SHARED(Vector<T>, left, [Tile::kRows][kLineVectors]);
  GPU_SHARED(Vector<T>, right, [Tile::kColumns][kLineVectors]);
  GPU_STATE(Vector<T>, next_left, Tile::kThreads, [Tile::kVectors]);
  GPU_STATE(Vector<T>, next_right, Tile::kThreads, [Tile::kVectors]);
  GPU_STATE(uint32_t, a, Tile::kThreads, [Tile::kDown][4]);
  GPU_STATE(uint32_t, b, Tile::kThreads, [Tile::kAcross][2]);
  GPU_STATE(float, sums, Tile::kThreads, [Tile::kDown][Tile::kAcross][4]);
  const int64_t across = (args.n + Tile::kColumns - 1) / Tile::kColumns, down = (args.m + Tile::kRows - 1) / Tile::kRows;
  for (int64_t u = blockIdx.x; u < across * down * args.batch; u += gridDim.x) {
    const int64_t column0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows, batch = u / across / down;
    const BatchOffsets at = OffsetsOf(args, batch);
    const Lines<T> rows = {static_cast<const T*>(args.a) + at.a, args.m, args.a_row, args.a_k,
                           args.a_row == 1 && args.a_k != 1},
                   columns = {static_cast<const T*>(args.b) + at.b, args.n, args.b_column, args.b_k,
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
    for (int64_t k0 = 0; k0 < args.k; k0 += kStep<T>) {
      GPU_PHASE(t) {
        StoreStep<Tile>(rows, GPU_OWN(next_left, t), left, t);
        StoreStep<Tile>(columns, GPU_OWN(next_right, t), right, t);
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        if (k0 + kStep<T> < args.k) {
          LoadStep<Tile>(rows, row0, k0 + kStep<T>, args.k, GPU_OWN(next_left, t), t);
          LoadStep<Tile>(columns, column0, k0 + kStep<T>, args.k, GPU_OWN(next_right, t), t);
        }
      }
      GPU_UNROLL for (int k = 0; k < kStepWords; k += 8) {
        GPU_PHASE(t) {
          const int warp = t / 32, line = t % 32 / 4, word = k + t % 4;
          const int row = warp / Tile::kWarpsAcross * Tile::kDown * 16 + line,
                    column = warp % Tile::kWarpsAcross * Tile::kAcross * 8 + line;
          GPU_UNROLL for (int i = 0; i < Tile::kDown; ++i) {
            GPU_UNROLL for (int r = 0; r < 4; ++r) {
              GPU_OWN(a, t)[i][r] = WordAt(left[row + 16 * i + 8 * (r % 2)], word + 4 * (r / 2));
            }
          }
          GPU_UNROLL for (int j = 0; j < Tile::kAcross; ++j) {
            GPU_UNROLL for (int r = 0; r < 2; ++r) GPU_OWN(b, t)[j][r] = WordAt(right[column + 8 * j], word + 4 * r);
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
GPU_PHASED_KERNEL(matmul_mma128_f32, LargeTile::kThreads, MatMulArgs, (MatMulMma<float, LargeTile>))
GPU_PHASED_KERNEL(matmul_mma64_f32, SmallTile::kThreads, MatMulArgs, (MatMulMma<float, SmallTile>))
#endif

#endif

}  // namespace mge::gpu
