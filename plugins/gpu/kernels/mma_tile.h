// SPDX-License-Identifier: Apache-2.0
// A tile of a product of 16-bit floats, of floats rounded to TF32, or of signed bytes, computed by matrix units (mma.h).
// Included by phased kernels only.
//
// A block computes the tile in steps of 64 bytes along k. There are kStages stages in shared memory: while a step is computed
// from one, the next steps are on their way into the others (mma_stage.h).
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
  GPU_SHARED(Vector<T>, left, [kStages][kStageVectors<Tile>]);                \
  GPU_SHARED(Vector<T>, right, [kStages][kStageVectors<Tile>]);               \
  GPU_STATE(typename A::Line, left_lines, Tile::kThreads, [Tile::kVectors]);  \
  GPU_STATE(typename B::Line, right_lines, Tile::kThreads, [Tile::kVectors]); \
  GPU_STATE(Vector<T>, next_left, Tile::kThreads, [Tile::kVectors]);          \
  GPU_STATE(Vector<T>, next_right, Tile::kThreads, [Tile::kVectors]);         \
  GPU_STATE(uint32_t, fragments_a, Tile::kThreads, [Tile::kDown][4]);         \
  GPU_STATE(uint32_t, fragments_b, Tile::kThreads, [Tile::kAcross][2]);       \
  GPU_STATE(MmaSum<T>, sums, Tile::kThreads, [Tile::kDown][Tile::kAcross][4])
// Their names, as arguments of ComputeMmaTile().
#define GPU_MMA_STATES left, right, left_lines, right_lines, next_left, next_right, fragments_a, fragments_b, sums

// Calls f(StageOrder<...>) with the order of a factor in its stages. Only a matrix in memory may have either one.
template <bool kAlongLines>
struct StageOrder {
  static constexpr bool along_lines = kAlongLines;
};
template <typename T, typename Factor, typename F>
GPU_DEVICE void WithOrder(const Factor& of, F&& f) {
  if constexpr (__is_same(Factor, Lines<T>)) {
    if (of.along_lines)
      f(StageOrder<true>());
    else
      f(StageOrder<false>());
  } else {
    f(StageOrder<Factor::along_lines>());
  }
}

// Adds the product of one stage of each factor to the sums.
template <typename T, typename Tile, bool kLeftAlongLines, bool kRightAlongLines, typename A, typename B, typename Sums>
GPU_DEVICE void MultiplyStages(const Vector<T>* left, const Vector<T>* right, A& a, B& b, Sums& sums) {
  GPU_UNROLL_REGISTERS for (int words = 0; words < kStepVectors / 2; ++words) {
    GPU_PHASE(t) {
      const int warp = t / 32;
      LoadLeft<Tile, kLeftAlongLines>(GPU_OWN(a, t), left, warp / Tile::kWarpsAcross * Tile::kDown * 16, words, t % 32);
      LoadRight<Tile, kRightAlongLines>(GPU_OWN(b, t), right, warp % Tile::kWarpsAcross * Tile::kAcross * 8, words, t % 32);
    }
    GPU_WARP_PHASE(first) {
      GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
        GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
          MultiplyFragments<T, Tile::kDown, Tile::kAcross>(GPU_LANES(sums, first), GPU_LANES(a, first), GPU_LANES(b, first),
                                                           i, j);
        }
      }
    }
  }
}

// Computes the tile at (row0, column0) of a product with `depth` terms. Calls store(sums, row, column) for each pair of
// elements (row, column) and (row, column + 1). For bytes, calls store(sums, row, column, total, totals) with the totals of the
// row and of the two columns.
template <typename T, typename Tile, typename LeftLines, typename RightLines, typename Next, typename A, typename B,
          typename Sums, typename Left, typename Right, typename Store>
GPU_DEVICE void ComputeMmaTile(Vector<T> (&left)[kStages][kStageVectors<Tile>],
                               Vector<T> (&right)[kStages][kStageVectors<Tile>], LeftLines& left_lines,
                               RightLines& right_lines, Next& next_left, Next& next_right, A& a, B& b, Sums& sums,
                               const Left& rows, const Right& columns, int64_t row0, int64_t column0, int64_t depth,
                               const Store& store) {
  constexpr int kAhead = kStages - 1;
  const auto begin = [&](int64_t k, int stage, int t) {
    if (k < depth) {
      BeginStep<Tile, T>(rows, GPU_OWN(left_lines, t), row0, k, depth, GPU_OWN(next_left, t), left[stage], t);
      BeginStep<Tile, T>(columns, GPU_OWN(right_lines, t), column0, k, depth, GPU_OWN(next_right, t), right[stage], t);
    }
    CommitCopies(t);
  };
  const auto finish = [&](int64_t k, int stage, int t) {
    if (k < depth) {
      FinishStep<Tile, T>(rows, GPU_OWN(left_lines, t), GPU_OWN(next_left, t), left[stage], t);
      FinishStep<Tile, T>(columns, GPU_OWN(right_lines, t), GPU_OWN(next_right, t), right[stage], t);
    }
  };
  GPU_PHASE(t) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(sums, t)[i][j][r] = 0;
      }
    }
    FindLines<Tile, T>(rows, row0, depth, GPU_OWN(left_lines, t), t);
    FindLines<Tile, T>(columns, column0, depth, GPU_OWN(right_lines, t), t);
    GPU_UNROLL_REGISTERS for (int stage = 0; stage < kAhead; ++stage) {
      begin(stage * kStep<T>, stage, t);
      finish(stage * kStep<T>, stage, t);
    }
  }
  int stage = 0, free = kAhead;  // the stage of this step, and the one of the step before it
  for (int64_t k0 = 0; k0 < depth; k0 += kStep<T>) {
    const int64_t ahead = k0 + kAhead * kStep<T>;
    GPU_PHASE(t) AwaitCopiesBefore<kAhead - 1>(t);
    GPU_BARRIER();  // this step is there, and no thread reads the one before it any more
    GPU_PHASE(t) begin(ahead, free, t);
    WithOrder<T>(rows, [&](auto left_order) {
      WithOrder<T>(columns, [&](auto right_order) {
        MultiplyStages<T, Tile, left_order.along_lines, right_order.along_lines>(left[stage], right[stage], a, b, sums);
      });
    });
    GPU_PHASE(t) finish(ahead, free, t);
    free = stage;
    stage = stage == kAhead ? 0 : stage + 1;
  }
  GPU_BARRIER();  // no thread reads a stage any more
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

// The kernels NAME128_TYPE and NAME64_TYPE of a template with the parameters T and Tile. `blocks`: blocks with large tiles that
// run on one multiprocessor, for which the registers must suffice.
#define GPU_MMA_KERNELS(name, type, T, Args, function, blocks)                                                          \
  GPU_PHASED_KERNEL(name##128_##type, LargeMmaTile::kThreads GPU_MIN_BLOCKS(blocks), Args, (function<T, LargeMmaTile>)) \
  GPU_PHASED_KERNEL(name##64_##type, SmallMmaTile::kThreads, Args, (function<T, SmallMmaTile>))

}  // namespace mge::gpu
