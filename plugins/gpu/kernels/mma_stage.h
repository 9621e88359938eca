// SPDX-License-Identifier: Apache-2.0
// The factors of a tile of a product by matrix units (mma_tile.h) on their way from memory to registers. Included by phased
// kernels only.
//
// A step of 64 bytes along k is staged in shared memory as it lies in memory: lines (rows of a, columns of b) along k, or,
// for a factor that is dense across lines, each k along lines. Vectors of 16 bytes change places within their line or k
// (PlaceInStage), so that the threads of a warp read from different banks.
//
// A step is brought in at kStages - 1 steps ahead. Three stages of the largest tile take the 48 KiB that a kernel has without
// asking for more.
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
constexpr int kStages = kCopiesRun ? 3 : 2;

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
  // The vectors that a thread copies: the place of the first one in this step, and the distance to the next one.
  struct Line {
    const T* from;
    int64_t next;
    bool whole;  // all vectors are aligned, and inside of the matrix or outside of it
  };
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
  // Returns whether every vector that begins inside of the first `k_end` elements along k is whole.
  GPU_DEVICE bool HasWholeVectors(int64_t k_end) const {
    const int64_t dense = along_lines ? line_stride : k_stride, other = along_lines ? k_stride : line_stride;
    return dense == 1 && (along_lines ? lines : k_end) % kEach<T> == 0 && other % kEach<T> == 0 && IsAligned(data);
  }
  // Copies a vector by element, with zeros outside.
  GPU_DEVICE void CopyElements(int64_t line, int64_t k, int64_t k_end, Vector<T>* to) const {
    Vector<T> v;
    GPU_UNROLL for (int i = 0; i < kEach<T>; ++i) {
      const int64_t at_line = line + (along_lines ? i : 0), at_k = k + (along_lines ? 0 : i);
      v.at[i] = at_line < lines && at_k < k_end ? *At(at_line, at_k) : T{};
    }
    *to = v;
  }
};

template <typename Tile>
constexpr int kStageVectors = Tile::kRows* kStepVectors;
template <typename Tile, typename T>
constexpr int kAcrossVectors = Tile::kRows / kEach<T>;  // vectors of one k across lines

// Returns the place in a stage of a vector of the line, or of the k if kAlongLines, `block` + `l`, where `block` is a multiple of
// 8 and l < 8. Eight lines or k that a warp reads together, or two vectors of four k if an element is a word, are in different
// banks.
template <typename Tile, typename T, bool kAlongLines>
GPU_DEVICE int PlaceInStage(int block, int l, int vector) {
  if constexpr (!kAlongLines)
    return (block + l) * kStepVectors + (vector ^ (l / 2));
  else
    return (block + l) * kAcrossVectors<Tile, T> + (vector ^ (sizeof(T) == 4 ? l % 4 * 2 : l));
}

// Vector i of a thread: its first line and k. Its place in the stage is PlaceOfFirst() + i * Tile::kThreads, because the
// vectors of a thread are whole turns of the places apart.
struct StageVector {
  int line, k;
};
template <typename Tile, typename T>
GPU_DEVICE StageVector VectorOf(bool along_lines, int i, int thread) {
  static_assert(Tile::kThreads % (8 * kStepVectors) == 0 && Tile::kThreads % (8 * kAcrossVectors<Tile, T>) == 0);
  const int e = thread + i * Tile::kThreads;
  if (along_lines) return {e % kAcrossVectors<Tile, T> * kEach<T>, e / kAcrossVectors<Tile, T>};
  return {e / kStepVectors, e % kStepVectors * kEach<T>};
}
template <typename Tile, typename T>
GPU_DEVICE int PlaceOfFirst(bool along_lines, int thread) {
  const int each = along_lines ? kAcrossVectors<Tile, T> : kStepVectors, at = thread / each, l = at % 8,
            vector = thread % each;
  return along_lines ? PlaceInStage<Tile, T, true>(at - l, l, vector) : PlaceInStage<Tile, T, false>(at - l, l, vector);
}

// Finds the lines from which the thread loads vectors of a product with `k_end` terms.
template <typename Tile, typename T, typename Factor, typename Line>
GPU_DEVICE void FindLines(const Factor& of, int64_t line0, int64_t k_end, Line (&lines)[Tile::kVectors], int thread) {
  if constexpr (__is_same(Factor, Lines<T>)) {
    const StageVector first = VectorOf<Tile, T>(of.along_lines, 0, thread);
    const int64_t next = of.along_lines ? Tile::kThreads / kAcrossVectors<Tile, T> * of.k_stride
                                        : Tile::kThreads / kStepVectors * of.line_stride;
    lines[0] = {of.At(line0 + first.line, first.k), next, of.HasWholeVectors(k_end)};
  } else {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
      lines[i] = of.LineAt(line0 + VectorOf<Tile, T>(of.along_lines, i, thread).line);
    }
  }
}

// Begin and finish to bring a step into a stage. Whole vectors of a matrix are copied in the background if the device can do
// so. Others, and those that a factor computes by Load(), wait in registers.
template <typename Tile, typename T, typename Factor, typename Line>
GPU_DEVICE void BeginStep(const Factor& of, Line (&lines)[Tile::kVectors], int64_t line0, int64_t k0, int64_t k_end,
                          Vector<T> (&next)[Tile::kVectors], Vector<T>* stage, int thread) {
  if constexpr (!__is_same(Factor, Lines<T>)) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
      next[i] = of.template Load<kEach<T>>(lines[i], k0 + VectorOf<Tile, T>(of.along_lines, i, thread).k, k_end);
    }
  } else {
    const int place = PlaceOfFirst<Tile, T>(of.along_lines, thread);
    Line& line = lines[0];
    if (line.whole) {
      const int64_t lines_left = of.lines - line0, k_left = k_end - k0;
      const T* from = line.from;
      GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i, from += line.next) {
        const StageVector at = VectorOf<Tile, T>(of.along_lines, i, thread);
        const bool inside = at.line < lines_left && at.k < k_left;
        if constexpr (kCopiesRun)
          CopyAsync(&stage[place + i * Tile::kThreads], from, inside, thread);
        else
          next[i] = inside ? ReadPack<kEach<T>>(from) : Vector<T>{};
      }
      line.from += kStep<T> * of.k_stride;
    } else {
      GPU_ROLLED for (int i = 0; i < Tile::kVectors; ++i) {
        const StageVector at = VectorOf<Tile, T>(of.along_lines, i, thread);
        of.CopyElements(line0 + at.line, k0 + at.k, k_end, &stage[place + i * Tile::kThreads]);
      }
    }
  }
}
template <typename Tile, typename T, typename Factor, typename Line>
GPU_DEVICE void FinishStep(const Factor& of, const Line (&lines)[Tile::kVectors], const Vector<T> (&next)[Tile::kVectors],
                           Vector<T>* stage, int thread) {
  if constexpr (__is_same(Factor, Lines<T>)) {
    if (kCopiesRun || !lines[0].whole) return;
  }
  const int place = PlaceOfFirst<Tile, T>(of.along_lines, thread);
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) stage[place + i * Tile::kThreads] = next[i];
}

// Puts the totals of the vectors of bytes that a thread has loaded into a stage that is free.
template <typename Tile, typename T, typename Line>
GPU_DEVICE void PutTotals(const Line (&lines)[Tile::kVectors], Vector<T>* stage, int thread) {
  const int place = PlaceOfFirst<Tile, T>(false, thread);
  GPU_UNROLL_REGISTERS for (int i = 0; i < Tile::kVectors; ++i) {
    const Pack<int32_t, 4> total = {{lines[i].total, 0, 0, 0}};
    stage[place + i * Tile::kThreads] = BitCast<Vector<T>>(total);
  }
}
// Returns the total of a line.
template <typename T>
GPU_DEVICE int32_t TotalOf(const Vector<T>* stage, int line) {
  uint32_t total = 0;
  GPU_UNROLL for (int i = 0; i < kStepVectors; ++i) {
    total += static_cast<uint32_t>(BitCast<Pack<int32_t, 4>>(stage[line * kStepVectors + i]).at[0]);
  }
  return static_cast<int32_t>(total);
}

// Loads the fragments of 8 words along k, the `words`-th of a stage, for two times 8 lines: the registers of LoadAlongK.
template <typename Tile, typename T, bool kAlongLines, FragmentOrder kOrder>
GPU_DEVICE void LoadLines(const Vector<T>* stage, int line, int words, int lane, uint32_t& r0, uint32_t& r1, uint32_t& r2,
                          uint32_t& r3) {
  const auto at = [&](int block, int l, int vector) { return &stage[PlaceInStage<Tile, T, kAlongLines>(block, l, vector)]; };
  if constexpr (!kAlongLines) {
    LoadAlongK<kOrder>(at, line, words, lane, r0, r1, r2, r3);
  } else if constexpr (sizeof(T) == 2) {
    LoadAcrossLines<kOrder>(at, line, words, lane, r0, r1, r2, r3);
  } else {
    const auto word = [&](int matrix) {
      const int column = line + 8 * LinesOf<kOrder>(matrix) + lane / 4;
      return BitCast<uint32_t>(at(8 * words, 4 * HalfOf<kOrder>(matrix) + lane % 4, column / 4)->at[column % 4]);
    };
    r0 = word(0);
    r1 = word(1);
    r2 = word(2);
    r3 = word(3);
  }
}

// Loads the fragments of 8 words along k for 16 * kDown rows from `row` on.
template <typename Tile, bool kAlongLines, typename T, int kDown>
GPU_DEVICE void LoadLeft(uint32_t (&a)[kDown][4], const Vector<T>* stage, int row, int words, int lane) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < kDown; ++i) {
    LoadLines<Tile, T, kAlongLines, kLeftFactor>(stage, row + 16 * i, words, lane, a[i][0], a[i][1], a[i][2], a[i][3]);
    RoundFactors<T>(a[i]);
  }
}
// The same for 8 * kColumns columns.
template <typename Tile, bool kAlongLines, typename T, int kColumns>
GPU_DEVICE void LoadRight(uint32_t (&b)[kColumns][2], const Vector<T>* stage, int column, int words, int lane) {
  GPU_UNROLL_REGISTERS for (int j = 0; j < kColumns; j += 2) {
    LoadLines<Tile, T, kAlongLines, kRightFactor>(stage, column + 8 * j, words, lane, b[j][0], b[j][1], b[j + 1][0],
                                                  b[j + 1][1]);
    RoundFactors<T>(b[j]);
    RoundFactors<T>(b[j + 1]);
  }
}

}  // namespace mge::gpu
