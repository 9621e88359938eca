// SPDX-License-Identifier: Apache-2.0
// A tile of a product of 16-bit floats, of floats rounded to TF32, or of signed bytes, computed by matrix units (mma.h).
// Included by phased kernels only.
//
// A block computes the tile in steps of 64 bytes along k. There are two stages in shared memory: while a step is computed
// from one, the next step is on its way into the other (mma_stage.h).
#pragma once

#include "plugins/gpu/kernels/mma_stage.h"

namespace mge::gpu {

// The type of sums.
template <typename T>
struct MmaSumOf {
  using type = float;
};
template <>
struct MmaSumOf<int8_t> {
  using type = int32_t;
};
template <typename T>
using MmaSum = typename MmaSumOf<T>::type;

// Declares the shared memory and the states of a kernel with factors of the types A and B.
#define GPU_MMA_TILE(T, Tile, A, B)                                           \
  GPU_SHARED(Vector<T>, left, [2][kStageVectors<Tile>]);                      \
  GPU_SHARED(Vector<T>, right, [2][kStageVectors<Tile>]);                     \
  GPU_STATE(typename A::Line, left_lines, Tile::kThreads, [Tile::kVectors]);  \
  GPU_STATE(typename B::Line, right_lines, Tile::kThreads, [Tile::kVectors]); \
  GPU_STATE(Vector<T>, next_left, Tile::kThreads, [Tile::kVectors]);          \
  GPU_STATE(Vector<T>, next_right, Tile::kThreads, [Tile::kVectors]);         \
  GPU_STATE(uint32_t, fragments_a, Tile::kThreads, [Tile::kDown][4]);         \
  GPU_STATE(uint32_t, fragments_b, Tile::kThreads, [Tile::kAcross][2]);       \
  GPU_STATE(MmaSum<T>, sums, Tile::kThreads, [Tile::kDown][Tile::kAcross][4])
// Their names, as arguments of ComputeMmaTile().
#define GPU_MMA_STATES left, right, left_lines, right_lines, next_left, next_right, fragments_a, fragments_b, sums

// Computes the tile at (row0, column0) of a product with `depth` terms. Calls store(sums, row, column) for each pair of
// elements (row, column) and (row, column + 1). For bytes, calls store(sums, row, column, total, totals) with the totals of the
// row and of the two columns.
template <typename T, typename Tile, typename LeftLines, typename RightLines, typename Next, typename A, typename B,
          typename Sums, typename Left, typename Right, typename Store>
GPU_DEVICE void ComputeMmaTile(Vector<T> (&left)[2][kStageVectors<Tile>], Vector<T> (&right)[2][kStageVectors<Tile>],
                               LeftLines& left_lines, RightLines& right_lines, Next& next_left, Next& next_right, A& a, B& b,
                               Sums& sums, const Left& rows, const Right& columns, int64_t row0, int64_t column0,
                               int64_t depth, const Store& store) {
  GPU_PHASE(t) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(sums, t)[i][j][r] = 0;
      }
    }
    FindLines<Tile, T>(rows, row0, GPU_OWN(left_lines, t), t);
    FindLines<Tile, T>(columns, column0, GPU_OWN(right_lines, t), t);
    BeginStep<Tile, T>(rows, GPU_OWN(left_lines, t), row0, 0, depth, GPU_OWN(next_left, t), left[0], t);
    BeginStep<Tile, T>(columns, GPU_OWN(right_lines, t), column0, 0, depth, GPU_OWN(next_right, t), right[0], t);
    FinishStep<Tile, T>(rows, row0, 0, depth, GPU_OWN(next_left, t), left[0], t);
    FinishStep<Tile, T>(columns, column0, 0, depth, GPU_OWN(next_right, t), right[0], t);
    AwaitCopies(t);
  }
  GPU_BARRIER();
  int stage = 0;
  for (int64_t k0 = 0; k0 < depth; k0 += kStep<T>, stage ^= 1) {
    const int64_t k1 = k0 + kStep<T>;
    GPU_PHASE(t) {
      if (k1 < depth) {
        BeginStep<Tile, T>(rows, GPU_OWN(left_lines, t), row0, k1, depth, GPU_OWN(next_left, t), left[stage ^ 1], t);
        BeginStep<Tile, T>(columns, GPU_OWN(right_lines, t), column0, k1, depth, GPU_OWN(next_right, t), right[stage ^ 1],
                           t);
      }
    }
    GPU_UNROLL_REGISTERS for (int words = 0; words < kStepVectors / 2; ++words) {
      GPU_PHASE(t) {
        const int warp = t / 32;
        LoadLeft<Tile>(GPU_OWN(a, t), left[stage], rows.along_lines, warp / Tile::kWarpsAcross * Tile::kDown * 16, words,
                       t % 32);
        LoadRight<Tile>(GPU_OWN(b, t), right[stage], columns.along_lines, warp % Tile::kWarpsAcross * Tile::kAcross * 8,
                        words, t % 32);
      }
      GPU_WARP_PHASE(first) {
        GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
          GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
            MultiplyFragments<T, Tile::kDown, Tile::kAcross>(GPU_LANES(sums, first), GPU_LANES(a, first),
                                                             GPU_LANES(b, first), i, j);
          }
        }
      }
    }
    GPU_PHASE(t) {
      if (k1 < depth) {
        FinishStep<Tile, T>(rows, row0, k1, depth, GPU_OWN(next_left, t), left[stage ^ 1], t);
        FinishStep<Tile, T>(columns, column0, k1, depth, GPU_OWN(next_right, t), right[stage ^ 1], t);
        AwaitCopies(t);
      }
    }
    GPU_BARRIER();  // the next step is there, and no thread reads this one any more
  }
  constexpr bool kBytes = sizeof(T) == 1;
  if constexpr (kBytes) {
    GPU_PHASE(t) {
      PutTotals<Tile, T>(GPU_OWN(left_lines, t), left[0], t);
      PutTotals<Tile, T>(GPU_OWN(right_lines, t), right[0], t);
    }
    GPU_BARRIER();
  }
  GPU_PHASE(t) {
    const int warp = t / 32, lane = t % 32;
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; r += 2) {
          const int row = (warp / Tile::kWarpsAcross * Tile::kDown + i) * 16 + lane / 4 + 4 * r;
          const int column = (warp % Tile::kWarpsAcross * Tile::kAcross + j) * 8 + lane % 4 * 2;
          MmaSum<T> pair[2] = {GPU_OWN(sums, t)[i][j][r], GPU_OWN(sums, t)[i][j][r + 1]};
          if constexpr (kBytes) {
            const int32_t totals[2] = {TotalOf<T>(right[0], column), TotalOf<T>(right[0], column + 1)};
            store(pair, row0 + row, column0 + column, TotalOf<T>(left[0], row), totals);
          } else {
            store(pair, row0 + row, column0 + column);
          }
        }
      }
    }
  }
  if constexpr (kBytes) GPU_BARRIER();  // no thread reads the totals any more
}

using LargeMmaTile = MmaTile<4, 4, 2, 4>;  // 128 x 128 outputs
using SmallMmaTile = MmaTile<2, 4, 2, 2>;  // 64 x 64

// The kernels NAME128_TYPE and NAME64_TYPE of a template with the parameters T and Tile.
#define GPU_MMA_KERNELS(name, type, T, Args, function)                                           \
  GPU_PHASED_KERNEL(name##128_##type, LargeMmaTile::kThreads, Args, (function<T, LargeMmaTile>)) \
  GPU_PHASED_KERNEL(name##64_##type, SmallMmaTile::kThreads, Args, (function<T, SmallMmaTile>))

}  // namespace mge::gpu
