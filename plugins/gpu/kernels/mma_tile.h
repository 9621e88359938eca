// SPDX-License-Identifier: Apache-2.0
// A tile of a product of 16-bit floats, or of floats rounded to TF32, computed by matrix units (mma.h). Included by phased
// kernels only.
//
// A block computes the tile in steps of 64 bytes along k. Both factors are staged in shared memory with their rows (columns
// for b) 80 bytes apart, so that the threads of a warp read fragments from 32 different banks. While a step is computed, the
// loads of the next one are on their way into registers.
#pragma once

#include "plugins/gpu/kernels/mma.h"

namespace mge::gpu {

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

// A factor gives a tile vectors of elements: of lines (rows of a, columns of b), along k, or if along_lines is true, of one
// k across lines. This is a matrix in memory.
template <typename T>
struct Lines {
  const T* data;
  int64_t lines, line_stride, k_stride;
  bool along_lines;  // memory is dense across lines

  GPU_DEVICE const T* At(int64_t line, int64_t k) const { return data + line * line_stride + k * k_stride; }
  // Returns whether one access loads a vector: it is dense, aligned and inside of the matrix.
  GPU_DEVICE bool IsWhole(int64_t line, int64_t k, int64_t k_end) const {
    const bool inside = along_lines ? line + kEach<T> <= lines && k < k_end : line < lines && k + kEach<T> <= k_end;
    const bool dense = along_lines ? line_stride == 1 : k_stride == 1;
    return inside && dense && reinterpret_cast<uintptr_t>(At(line, k)) % 16 == 0;
  }
  // Loads a vector: with one access if possible, else by element, with zeros outside.
  GPU_DEVICE Vector<T> Load(int64_t line, int64_t k, int64_t k_end) const {
    if (IsWhole(line, k, k_end)) return *reinterpret_cast<const Vector<T>*>(At(line, k));
    Vector<T> v;
    GPU_UNROLL_REGISTERS for (int i = 0; i < kEach<T>; ++i) {
      const int64_t at_line = line + (along_lines ? i : 0), at_k = k + (along_lines ? 0 : i);
      v.at[i] = at_line < lines && at_k < k_end ? *At(at_line, at_k) : T{};
    }
    return v;
  }
};

// Writes the place of vector i in the tile's part of a factor.
template <typename Tile, typename T>
GPU_DEVICE void PlaceOf(bool along_lines, int i, int thread, int* line, int* k) {
  constexpr int kLines = Tile::kRows / kEach<T>;  // vectors across lines
  const int e = thread + i * Tile::kThreads;
  *line = along_lines ? e % kLines * kEach<T> : e / kStepVectors;
  *k = along_lines ? e / kLines : e % kStepVectors * kEach<T>;
}

template <typename Tile, typename T, typename Factor>
GPU_DEVICE void LoadStep(const Factor& of, int64_t line0, int64_t k0, int64_t k_end, Vector<T> (&to)[Tile::kVectors],
                         int thread) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile, T>(of.along_lines, i, thread, &line, &k);
    to[i] = of.Load(line0 + line, k0 + k, k_end);
  }
}

template <typename Tile, typename T, typename Factor>
GPU_DEVICE void StoreStep(const Factor& of, Vector<T> (&from)[Tile::kVectors], Vector<T> (*to)[kLineVectors], int thread) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    int line, k;
    PlaceOf<Tile, T>(of.along_lines, i, thread, &line, &k);
    if constexpr (sizeof(T) == 4) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < kEach<T>; ++j) from[i].at[j] = RoundToTf32(from[i].at[j]);
    }
    if (of.along_lines) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < kEach<T>; ++j) reinterpret_cast<T*>(to[line + j])[k] = from[i].at[j];
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

// Declares the shared memory and the states of a kernel.
#define GPU_MMA_TILE(T, Tile)                                           \
  GPU_SHARED(Vector<T>, left, [Tile::kRows][kLineVectors]);             \
  GPU_SHARED(Vector<T>, right, [Tile::kColumns][kLineVectors]);         \
  GPU_STATE(Vector<T>, next_left, Tile::kThreads, [Tile::kVectors]);    \
  GPU_STATE(Vector<T>, next_right, Tile::kThreads, [Tile::kVectors]);   \
  GPU_STATE(uint32_t, fragments_a, Tile::kThreads, [Tile::kDown][4]);   \
  GPU_STATE(uint32_t, fragments_b, Tile::kThreads, [Tile::kAcross][2]); \
  GPU_STATE(float, sums, Tile::kThreads, [Tile::kDown][Tile::kAcross][4])
// Their names, as arguments of ComputeMmaTile().
#define GPU_MMA_STATES left, right, next_left, next_right, fragments_a, fragments_b, sums

// Computes the tile at (row0, column0) of a product with `depth` terms. Calls store(sum, row, column) for each element.
template <typename T, typename Tile, typename Next, typename A, typename B, typename Sums, typename Left, typename Right,
          typename Store>
GPU_DEVICE void ComputeMmaTile(Vector<T> (&left)[Tile::kRows][kLineVectors],
                               Vector<T> (&right)[Tile::kColumns][kLineVectors], Next& next_left, Next& next_right, A& a,
                               B& b, Sums& sums, const Left& rows, const Right& columns, int64_t row0, int64_t column0,
                               int64_t depth, const Store& store) {
  GPU_PHASE(t) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(sums, t)[i][j][r] = 0;
      }
    }
    LoadStep<Tile, T>(rows, row0, 0, depth, GPU_OWN(next_left, t), t);
    LoadStep<Tile, T>(columns, column0, 0, depth, GPU_OWN(next_right, t), t);
  }
  for (int64_t k0 = 0; k0 < depth; k0 += kStep<T>) {
    GPU_PHASE(t) {
      StoreStep<Tile, T>(rows, GPU_OWN(next_left, t), left, t);
      StoreStep<Tile, T>(columns, GPU_OWN(next_right, t), right, t);
    }
    GPU_BARRIER();
    GPU_PHASE(t) {
      if (k0 + kStep<T> < depth) {
        LoadStep<Tile, T>(rows, row0, k0 + kStep<T>, depth, GPU_OWN(next_left, t), t);
        LoadStep<Tile, T>(columns, column0, k0 + kStep<T>, depth, GPU_OWN(next_right, t), t);
      }
    }
    GPU_UNROLL_REGISTERS for (int k = 0; k < kStepWords; k += 8) {
      GPU_PHASE(t) {
        const int warp = t / 32, line = t % 32 / 4, word = k + t % 4;
        const int row = warp / Tile::kWarpsAcross * Tile::kDown * 16 + line,
                  column = warp % Tile::kWarpsAcross * Tile::kAcross * 8 + line;
        GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) {
            GPU_OWN(a, t)[i][r] = WordAt(left[row + 16 * i + 8 * (r % 2)], word + 4 * (r / 2));
          }
        }
        GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) GPU_OWN(b, t)[j][r] = WordAt(right[column + 8 * j], word + 4 * r);
        }
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
    GPU_BARRIER();
  }
  GPU_PHASE(t) {
    const int warp = t / 32, lane = t % 32;
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kDown; ++i) {
      GPU_UNROLL_REGISTERS for (int j = 0; j < Tile::kAcross; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) {
          const int64_t row = row0 + (warp / Tile::kWarpsAcross * Tile::kDown + i) * 16 + lane / 4 + 8 * (r / 2);
          const int64_t column = column0 + (warp % Tile::kWarpsAcross * Tile::kAcross + j) * 8 + lane % 4 * 2 + r % 2;
          store(GPU_OWN(sums, t)[i][j][r], row, column);
        }
      }
    }
  }
}

using LargeMmaTile = MmaTile<4, 4, 2, 4>;  // 128 x 128 outputs
using SmallMmaTile = MmaTile<2, 4, 2, 2>;  // 64 x 64

// The kernels NAME128_TYPE and NAME64_TYPE of a template with the parameters T and Tile.
#define GPU_MMA_KERNELS(name, type, T, Args, function)                                           \
  GPU_PHASED_KERNEL(name##128_##type, LargeMmaTile::kThreads, Args, (function<T, LargeMmaTile>)) \
  GPU_PHASED_KERNEL(name##64_##type, SmallMmaTile::kThreads, Args, (function<T, SmallMmaTile>))

}  // namespace mge::gpu
