// SPDX-License-Identifier: Apache-2.0
// A tile of a product of 8-bit integers with 32-bit sums, which wrap around. 256 threads compute 64 x 64 outputs, 4 x 4 each,
// in steps of 64 bytes along k: 16 words of four neighbours. Included by phased kernels only.
//
// All bytes are signed in a tile: 128 is subtracted from unsigned ones, and from their zero points. A factor gives the words.
// Cells says which ones a thread brings to a tile: word i of thread t is the Word(t, i)-th of a step of line Line(t, i).
// LineAt(line) returns what a thread knows of its (first) line, and is called once per tile. Load(Line, k, depth) returns the
// thread's words of the step whose first word of the thread is at k, with zeros outside of the factor.
#pragma once

#include "plugins/gpu/kernels/pack.h"
#include "plugins/gpu/kernels/tile.h"

namespace mge::gpu {

constexpr int kStepBytes = 4 * kTileK;
using Words = Pack<uint32_t, 4>;
// The words of a step: [word along k][line / 4].at[line % 4].
constexpr int kTilePitch = (kTileRows + kTilePad) / 4;
using WordTile = Words[kTileK][kTilePitch];

// Four words of one line.
struct WordsAlongK {
  static GPU_DEVICE int Word(int thread, int i) { return thread % 4 * 4 + i; }
  static GPU_DEVICE int Line(int thread, int) { return thread / 4; }
};
// The same; neighbouring threads have neighbouring lines.
struct WordsOfNeighbours {
  static GPU_DEVICE int Word(int thread, int i) { return thread / kTileRows * 4 + i; }
  static GPU_DEVICE int Line(int thread, int) { return thread % kTileRows; }
};
// One word of each of four lines.
struct WordsAcrossLines {
  static GPU_DEVICE int Word(int thread, int) { return thread / (kTileRows / 4); }
  static GPU_DEVICE int Line(int thread, int i) { return thread % (kTileRows / 4) * 4 + i; }
};

// The word that makes unsigned bytes signed by exclusive or; 0 for bytes that are signed.
GPU_DEVICE uint32_t SignsOf(bool is_signed) { return is_signed ? 0 : 0x80808080u; }
// Returns a zero point, which is 0 if `zeros` is null, as a signed number.
GPU_DEVICE int32_t ZeroAt(const uint8_t* zeros, int64_t i, uint32_t signs) {
  return static_cast<int8_t>((zeros ? zeros[i] : 0) ^ (signs & 0x80));
}

// Reads 4 * N neighbouring bytes as words.
template <int N>
GPU_DEVICE Pack<uint32_t, N> ReadWords(const uint8_t* from) {
  Pack<uint32_t, N> words;
  const auto address = reinterpret_cast<uint64_t>(from);
  const auto* whole = reinterpret_cast<const uint32_t*>(from);
  if (address % (4 * N) == 0) return ReadPack<N>(whole);
  if (address % 4 == 0) {
    GPU_UNROLL for (int i = 0; i < N; ++i) words.at[i] = whole[i];
    return words;
  }
  GPU_UNROLL for (int i = 0; i < N; ++i) {
    words.at[i] = 0;
    GPU_UNROLL for (int j = 0; j < 4; ++j) words.at[i] |= static_cast<uint32_t>(from[4 * i + j]) << (8 * j);
  }
  return words;
}
// The same for the first `count` bytes; the rest is 0.
template <int N>
GPU_DEVICE Pack<uint32_t, N> ReadSignedBytes(const uint8_t* from, int64_t count, uint32_t signs) {
  Pack<uint32_t, N> words = {};
  if (count >= 4 * N) {
    words = ReadWords<N>(from);
    GPU_UNROLL for (int i = 0; i < N; ++i) words.at[i] ^= signs;
    return words;
  }
  GPU_UNROLL for (int i = 0; i < 4 * N; ++i) {
    if (i < count) words.at[i / 4] |= static_cast<uint32_t>(from[i] ^ (signs & 0x80)) << (8 * (i % 4));
  }
  return words;
}

// A matrix whose lines are dense along k.
struct ByteLines {
  using Cells = WordsAlongK;
  using Line = const uint8_t*;
  const uint8_t* data;
  int64_t lines, stride;
  uint32_t signs;

  GPU_DEVICE Line LineAt(int64_t line) const { return line < lines ? data + line * stride : nullptr; }
  GPU_DEVICE Words Load(const Line& line, int64_t k, int64_t depth) const {
    if (!line || k >= depth) return {};
    return ReadSignedBytes<4>(line + k, depth - k, signs);
  }
};

// A matrix that is dense across lines: `stride` bytes lead from one k to the next.
struct ByteColumns {
  using Cells = WordsAcrossLines;
  using Line = int64_t;
  const uint8_t* data;
  int64_t lines, stride;
  uint32_t signs;

  GPU_DEVICE Line LineAt(int64_t line) const { return line; }
  GPU_DEVICE Words Load(const Line& line, int64_t k, int64_t depth) const {
    uint32_t rows[4] = {};
    if (line >= lines) return {};
    GPU_UNROLL for (int j = 0; j < 4; ++j) {
      if (k + j < depth) rows[j] = ReadSignedBytes<1>(data + (k + j) * stride + line, lines - line, signs).at[0];
    }
    // Transposes 4 x 4 bytes: pairs of bytes, then pairs of pairs.
    constexpr uint32_t kEven = 0x00ff00ffu;
    const uint32_t even0 = (rows[0] & kEven) | (rows[1] & kEven) << 8, odd0 = (rows[0] >> 8 & kEven) | (rows[1] & ~kEven);
    const uint32_t even2 = (rows[2] & kEven) | (rows[3] & kEven) << 8, odd2 = (rows[2] >> 8 & kEven) | (rows[3] & ~kEven);
    constexpr uint32_t kLow = 0xffffu;
    return {{(even0 & kLow) | even2 << 16, (odd0 & kLow) | odd2 << 16, even0 >> 16 | (even2 & ~kLow),
             odd0 >> 16 | (odd2 & ~kLow)}};
  }
};

// Declares the shared memory and the states of a kernel with factors of the types Left and Right.
#define GPU_INTEGER_TILE(Left, Right)                              \
  GPU_SHARED(Words, a, [kTileK][kTilePitch]);                      \
  GPU_SHARED(Words, b, [kTileK][kTilePitch]);                      \
  GPU_STATE(typename Left::Line, left_lines, kTileThreads, [1]);   \
  GPU_STATE(typename Right::Line, right_lines, kTileThreads, [1]); \
  GPU_STATE(Words, next_left, kTileThreads, [1]);                  \
  GPU_STATE(Words, next_right, kTileThreads, [1]);                 \
  GPU_STATE(int32_t, totals, kTileThreads, [2][4]);                \
  GPU_STATE(int32_t, sums, kTileThreads, [4][4])
// Their names, as arguments of ComputeIntegerTile().
#define GPU_INTEGER_STATES a, b, left_lines, right_lines, next_left, next_right, totals, sums

// The results of a thread: the sums of products of signed bytes, and of the bytes of each line, from the first row and column
// on.
struct IntegerSums {
  int32_t products[4][4];
  int32_t rows[4], columns[4];
};

// Puts the thread's words into a tile.
template <typename Cells, typename Values>
GPU_DEVICE void PutWords(const Values& values, WordTile& tile, int thread) {
  GPU_UNROLL for (int i = 0; i < 4; ++i) {
    const int line = Cells::Line(thread, i);
    tile[Cells::Word(thread, i)][line / 4].at[line % 4] = static_cast<uint32_t>(values[i]);
  }
}

// Computes the tile at (row0, column0) of a product with `depth` terms. Calls store(sums, row, column) in each thread.
template <typename LeftLines, typename RightLines, typename Next, typename Totals, typename Sums, typename Left,
          typename Right, typename Store>
GPU_DEVICE void ComputeIntegerTile(WordTile& a, WordTile& b, LeftLines& left_lines, RightLines& right_lines, Next& next_left,
                                   Next& next_right, Totals& totals, Sums& sums, const Left& rows, const Right& columns,
                                   int64_t row0, int64_t column0, int64_t depth, const Store& store) {
  constexpr uint32_t kOnes = 0x01010101u;
  using LeftCells = typename Left::Cells;
  using RightCells = typename Right::Cells;
  const auto load = [&](int64_t k0, int t) {
    GPU_OWN(next_left, t)[0] = rows.Load(GPU_OWN(left_lines, t)[0], k0 + 4 * LeftCells::Word(t, 0), depth);
    GPU_OWN(next_right, t)[0] = columns.Load(GPU_OWN(right_lines, t)[0], k0 + 4 * RightCells::Word(t, 0), depth);
  };
  GPU_PHASE(t) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < 4; ++i) {
      GPU_OWN(totals, t)[0][i] = GPU_OWN(totals, t)[1][i] = 0;
      GPU_UNROLL_REGISTERS for (int j = 0; j < 4; ++j) GPU_OWN(sums, t)[i][j] = 0;
    }
    GPU_OWN(left_lines, t)[0] = rows.LineAt(row0 + LeftCells::Line(t, 0));
    GPU_OWN(right_lines, t)[0] = columns.LineAt(column0 + RightCells::Line(t, 0));
    load(0, t);
  }
  for (int64_t k0 = 0; k0 < depth; k0 += kStepBytes) {
    GPU_PHASE(t) {
      PutWords<LeftCells>(GPU_OWN(next_left, t)[0].at, a, t);
      PutWords<RightCells>(GPU_OWN(next_right, t)[0].at, b, t);
      GPU_UNROLL_REGISTERS for (int i = 0; i < 4; ++i) {
        int32_t(&total)[2][4] = GPU_OWN(totals, t);
        total[0][i] = DotOfBytes(GPU_OWN(next_left, t)[0].at[i], kOnes, total[0][i]);
        total[1][i] = DotOfBytes(GPU_OWN(next_right, t)[0].at[i], kOnes, total[1][i]);
      }
    }
    GPU_BARRIER();
    GPU_PHASE(t) {
      if (k0 + kStepBytes < depth) load(k0 + kStepBytes, t);
      GPU_UNROLL for (int k = 0; k < kTileK; ++k) {
        const Words left = a[k][t / 16], right = b[k][t % 16];
        GPU_UNROLL for (int i = 0; i < 4; ++i) {
          GPU_UNROLL for (int j = 0; j < 4; ++j) {
            int32_t& sum = GPU_OWN(sums, t)[i][j];
            sum = DotOfBytes(left.at[i], right.at[j], sum);
          }
        }
      }
    }
    GPU_BARRIER();
  }
  // The tiles are free for the totals of the words.
  GPU_PHASE(t) {
    PutWords<LeftCells>(GPU_OWN(totals, t)[0], a, t);
    PutWords<RightCells>(GPU_OWN(totals, t)[1], b, t);
  }
  GPU_BARRIER();
  GPU_PHASE(t) {
    uint32_t row_sums[4] = {}, column_sums[4] = {};
    GPU_UNROLL for (int k = 0; k < kTileK; ++k) {
      const Words left = a[k][t / 16], right = b[k][t % 16];
      GPU_UNROLL for (int i = 0; i < 4; ++i) row_sums[i] += left.at[i];
      GPU_UNROLL for (int i = 0; i < 4; ++i) column_sums[i] += right.at[i];
    }
    IntegerSums all;
    GPU_UNROLL for (int i = 0; i < 4; ++i) {
      GPU_UNROLL for (int j = 0; j < 4; ++j) all.products[i][j] = GPU_OWN(sums, t)[i][j];
      all.rows[i] = static_cast<int32_t>(row_sums[i]);
      all.columns[i] = static_cast<int32_t>(column_sums[i]);
    }
    store(all, row0 + t / 16 * 4, column0 + t % 16 * 4);
  }
  GPU_BARRIER();
}

// Returns the sum of products of differences from zero points, from sums of products of `depth` numbers.
GPU_DEVICE int32_t Centred(int32_t products, int32_t row_sum, int32_t column_sum, int32_t row_zero, int32_t column_zero,
                           int64_t depth) {
  const auto wide = [](int32_t v) { return static_cast<uint32_t>(v); };
  return static_cast<int32_t>(wide(products) - wide(row_zero) * wide(column_sum) - wide(column_zero) * wide(row_sum) +
                              static_cast<uint32_t>(depth) * wide(row_zero) * wide(column_zero));
}

// Stores the first `count` of N neighbours, at once if they are whole and aligned.
template <typename T, int N>
GPU_DEVICE void StoreNeighbours(T* to, const Pack<T, N>& values, int64_t count) {
  if (count >= N && reinterpret_cast<uint64_t>(to) % sizeof(values) == 0) return WritePack(to, values);
  GPU_UNROLL for (int i = 0; i < N; ++i) {
    if (i < count) to[i] = values.at[i];
  }
}

}  // namespace mge::gpu
