// SPDX-License-Identifier: Apache-2.0
// How a product of matrices is cut into chunks, and what it costs.
#pragma once

#include "isa.h"
#include "mge/plugin.hpp"
#include "support/work.h"
#include "vec/gemm.h"

namespace mge::cpu {

struct GemmSize {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
};

// Time of one thread for the arithmetic and for reading what is not in the caches. `copies` is the time, in ns per element
// of A, that bringing A into place takes.
double GemmSerialUs(const GemmSize& size, Isa isa, double copies_ns = 0.03);
// Factor on that time for our own product, compared with a library's.
inline constexpr double kGemmOwn = 1.15;

// A batch of products in chunks of rows and panels of columns; a function of the size alone.
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
  int64_t column = c % s.column_chunks, row = c / s.column_chunks % s.row_chunks, batch = c / (s.column_chunks * s.row_chunks);
  body(batch, s.m * row / s.row_chunks, s.m * (row + 1) / s.row_chunks, s.panels * column / s.column_chunks,
       s.panels * (column + 1) / s.column_chunks);
}

// Runs body(batch index, m0, m1, p0, p1) for every chunk.
template <typename F>
void ForGemmChunks(const mge_run* run, const GemmSplit& s, F&& body) {
  ParallelFor(run, s.chunks(), [&](uint64_t chunk) { RunGemmChunk(s, chunk, body); });
}

}  // namespace mge::cpu
