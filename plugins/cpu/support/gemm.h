// SPDX-License-Identifier: Apache-2.0
// Splits a matrix product into chunks and estimates its time.
#pragma once

#include "isa.h"
#include "mge/plugin.hpp"
#include "support/work.h"
#include "vec/gemm.h"

namespace mge::cpu {

// The size of a batch of matrix products.
struct GemmSize {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
};

// Returns one thread's time for arithmetic and for reading data that is not cached. `copies_ns` is the time per element of
// A, in nanoseconds, for copying A.
double GemmSerialUs(const GemmSize& size, Isa isa, double copies_ns = 0.03);
// Factor on that time for our own product, relative to a library's.
inline constexpr double kGemmOwn = 1.15;

// A batch of products split into chunks of rows and panels of columns. Depends only on the size.
struct GemmSplit {
  int64_t m = 0, panels = 0, batch = 1;
  int64_t row_chunks = 1, column_chunks = 1;

  uint64_t chunks() const { return static_cast<uint64_t>(batch * row_chunks * column_chunks); }
};
GemmSplit SplitGemm(const GemmSize& size, int columns, double serial_us);

// Runs body(batch index, m0, m1, p0, p1) for one chunk.
template <typename F>
void RunGemmChunk(const GemmSplit& s, uint64_t chunk, F&& body) {
  int64_t c = static_cast<int64_t>(chunk);
  int64_t column = c % s.column_chunks, row = c / s.column_chunks % s.row_chunks,
          batch = c / (s.column_chunks * s.row_chunks);
  body(batch, s.m * row / s.row_chunks, s.m * (row + 1) / s.row_chunks, s.panels * column / s.column_chunks,
       s.panels * (column + 1) / s.column_chunks);
}

// Runs body(batch index, m0, m1, p0, p1) for every chunk.
template <typename F>
void ForGemmChunks(const mge_run* run, const GemmSplit& s, F&& body) {
  ParallelFor(run, s.chunks(), [&](uint64_t chunk) { RunGemmChunk(s, chunk, body); });
}

}  // namespace mge::cpu
