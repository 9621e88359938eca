// SPDX-License-Identifier: Apache-2.0
// The factors of a tile of a product by matrix units (mma_tile.h) on their way from memory to registers. Included by phased
// kernels only.
//
// A step of 64 bytes along k is staged in shared memory as it lies in memory: lines (rows of a, columns of b) along k, or,
// for a factor that is dense across lines, each k along lines. Both have gaps between them, so that the threads of a warp
// read from different banks.
#pragma once

#include "plugins/gpu/kernels/async_copy.h"
#include "plugins/gpu/kernels/fragments.h"
#include "plugins/gpu/kernels/pack.h"

namespace mge::gpu {

constexpr int kStepVectors = 4;  // vectors of 16 bytes along k of a step
template <typename T>
constexpr int kEach = kWidest<T>;  // elements of a vector
template <typename T>
constexpr int kStep = kStepVectors* kEach<T>;
template <typename T>
using Vector = Pack<T, kEach<T>>;

// A tile: warps_down x warps_across warps, each with `down` x `across` fragments of the result.
template <int kDownOf, int kAcrossOf, int kWarpsDownOf, int kWarpsAcrossOf>
struct MmaTile {
  static constexpr int kDown = kDownOf, kAcross = kAcrossOf, kWarpsDown = kWarpsDownOf, kWarpsAcross = kWarpsAcrossOf;
  static constexpr int kRows = 16 * kDown * kWarpsDown, kColumns = 8 * kAcross * kWarpsAcross;
  static constexpr int kThreads = 32 * kWarpsDown * kWarpsAcross;
  static constexpr int kVectors = kRows * kStepVectors / kThreads;  // per thread, of each factor
  static_assert(kRows == kColumns && kAcross % 2 == 0);
};

// A factor gives a tile vectors of elements: of lines, along k, or if along_lines is true, of one k across lines. Factors that
// compute where elements are have LineAt(line), which returns what a thread knows of a line and is called once per tile, and
// Load<N>(Line, k, k_end), which returns a vector with zeros outside of the factor. Factors of bytes are never along lines, and
// Load() adds the bytes to Line::total. This factor is a matrix in memory.
template <typename T>
struct Lines {
  struct Line {};
  const T* data;
  int64_t lines, line_stride, k_stride;
  bool along_lines;  // memory is dense across lines

  GPU_DEVICE const T* At(int64_t line, int64_t k) const { return data + line * line_stride + k * k_stride; }
  // Returns whether one access loads a vector: it is dense, aligned and inside of the matrix.
  GPU_DEVICE bool IsWhole(int64_t line, int64_t k, int64_t k_end) const {
    const bool inside = along_lines ? line + kEach<T> <= lines && k < k_end : line < lines && k + kEach<T> <= k_end;
    const bool dense = along_lines ? line_stride == 1 : k_stride == 1;
    return inside && dense && IsAligned(At(line, k));
  }
  // Copies a vector by element, with zeros outside.
  GPU_DEVICE void CopyElements(int64_t line, int64_t k, int64_t k_end, Vector<T>* to) const {
    for (int i = 0; i < kEach<T>; ++i) {
      const int64_t at_line = line + (along_lines ? i : 0), at_k = k + (along_lines ? 0 : i);
      to->at[i] = at_line < lines && at_k < k_end ? *At(at_line, at_k) : T{};
    }
  }
};

// The vectors from one line, or one k, to the next, and the vectors of a stage.
constexpr int kLinePitch = kStepVectors + 1;
template <typename Tile, typename T>
constexpr int kAcrossPitch = Tile::kRows / kEach<T> + (sizeof(T) == 4 ? 2 : 1);
template <typename Tile>
constexpr int kStageVectors = Tile::kRows* kLinePitch;

// The place of vector i of a thread: its first line and k, and its number in the stage.
struct StagePlace {
  int line, k, vector;
};
template <typename Tile, typename T>
GPU_DEVICE StagePlace PlaceOf(bool along_lines, int i, int thread) {
  static_assert(kStep<T> * kAcrossPitch<Tile, T> <= kStageVectors<Tile>);
  constexpr int kLines = Tile::kRows / kEach<T>;  // vectors across lines
  const int e = thread + i * Tile::kThreads;
  if (along_lines) return {e % kLines * kEach<T>, e / kLines, e / kLines * kAcrossPitch<Tile, T> + e % kLines};
  return {e / kStepVectors, e % kStepVectors * kEach<T>, e / kStepVectors * kLinePitch + e % kStepVectors};
}

// Finds the lines from which the thread loads vectors.
template <typename Tile, typename T, typename Factor, typename Line>
GPU_DEVICE void FindLines(const Factor& of, int64_t line0, Line (&lines)[Tile::kVectors], int thread) {
  if constexpr (!__is_same(Factor, Lines<T>)) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
      lines[i] = of.LineAt(line0 + PlaceOf<Tile, T>(of.along_lines, i, thread).line);
    }
  }
}

// Begin and finish to bring a step into a stage. Vectors that are whole in memory are copied in the background if the device
// can do so. Others, which a factor computes by Load(), wait in registers.
template <typename Tile, typename T, typename Factor, typename Line>
GPU_DEVICE void BeginStep(const Factor& of, Line (&lines)[Tile::kVectors], int64_t line0, int64_t k0, int64_t k_end,
                          Vector<T> (&next)[Tile::kVectors], Vector<T>* stage, int thread) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    const StagePlace at = PlaceOf<Tile, T>(of.along_lines, i, thread);
    const int64_t k = k0 + at.k;
    if constexpr (__is_same(Factor, Lines<T>)) {
      const int64_t line = line0 + at.line;
      if (!of.IsWhole(line, k, k_end))
        of.CopyElements(line, k, k_end, &stage[at.vector]);
      else if constexpr (kCopiesRun)
        CopyAsync(&stage[at.vector], of.At(line, k), thread);
      else
        next[i] = ReadPack<kEach<T>>(of.At(line, k));
    } else {
      next[i] = of.template Load<kEach<T>>(lines[i], k, k_end);
    }
  }
}
template <typename Tile, typename T, typename Factor>
GPU_DEVICE void FinishStep(const Factor& of, int64_t line0, int64_t k0, int64_t k_end,
                           const Vector<T> (&next)[Tile::kVectors], Vector<T>* stage, int thread) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    const StagePlace at = PlaceOf<Tile, T>(of.along_lines, i, thread);
    if constexpr (__is_same(Factor, Lines<T>)) {
      if (!kCopiesRun && of.IsWhole(line0 + at.line, k0 + at.k, k_end)) stage[at.vector] = next[i];
    } else {
      stage[at.vector] = next[i];
    }
  }
}

// Puts the totals of the vectors of bytes that a thread has loaded into a stage that is free.
template <typename Tile, typename T, typename Line>
GPU_DEVICE void PutTotals(const Line (&lines)[Tile::kVectors], Vector<T>* stage, int thread) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    const Pack<int32_t, 4> total = {{lines[i].total, 0, 0, 0}};
    stage[PlaceOf<Tile, T>(false, i, thread).vector] = BitCast<Vector<T>>(total);
  }
}
// Returns the total of a line.
template <typename T>
GPU_DEVICE int32_t TotalOf(const Vector<T>* stage, int line) {
  uint32_t total = 0;
  GPU_UNROLL for (int i = 0; i < kStepVectors; ++i) {
    total += static_cast<uint32_t>(BitCast<Pack<int32_t, 4>>(stage[line * kLinePitch + i]).at[0]);
  }
  return static_cast<int32_t>(total);
}

// Loads the fragments of 8 words along k, the `words`-th of a stage, for two times 8 lines: the registers of LoadAlongK.
template <typename Tile, typename T>
GPU_DEVICE void LoadLines(const Vector<T>* stage, bool along_lines, int line, int words, int lane, uint32_t& r00,
                          uint32_t& r01, uint32_t& r10, uint32_t& r11) {
  if (!along_lines) {
    LoadAlongK([&](int l, int vector) { return &stage[l * kLinePitch + vector]; }, line, words, lane, r00, r01, r10, r11);
  } else if constexpr (sizeof(T) == 2) {
    LoadAcrossLines([&](int k, int vector) { return &stage[k * kAcrossPitch<Tile, T> + vector]; }, line, words, lane, r00,
                    r01, r10, r11);
  } else {
    const auto word = [&](int i, int j) {
      const Vector<T>* from = &stage[(8 * words + 4 * j + lane % 4) * kAcrossPitch<Tile, T>];
      return BitCast<uint32_t>(reinterpret_cast<const float*>(from)[line + 8 * i + lane / 4]);
    };
    r00 = word(0, 0);
    r01 = word(0, 1);
    r10 = word(1, 0);
    r11 = word(1, 1);
  }
}

// Loads the fragments of 8 words along k for 16 * kDown rows from `row` on.
template <typename Tile, typename T, int kDown>
GPU_DEVICE void LoadLeft(uint32_t (&a)[kDown][4], const Vector<T>* stage, bool along_lines, int row, int words, int lane) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < kDown; ++i) {
    LoadLines<Tile>(stage, along_lines, row + 16 * i, words, lane, a[i][0], a[i][2], a[i][1], a[i][3]);
    RoundFactors<T>(a[i]);
  }
}
// The same for 8 * kAcross columns.
template <typename Tile, typename T, int kAcross>
GPU_DEVICE void LoadRight(uint32_t (&b)[kAcross][2], const Vector<T>* stage, bool along_lines, int column, int words,
                          int lane) {
  GPU_UNROLL_REGISTERS for (int j = 0; j < kAcross; j += 2) {
    LoadLines<Tile>(stage, along_lines, column + 8 * j, words, lane, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
    RoundFactors<T>(b[j]);
    RoundFactors<T>(b[j + 1]);
  }
}

}  // namespace mge::gpu
