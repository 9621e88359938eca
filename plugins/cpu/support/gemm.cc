// SPDX-License-Identifier: Apache-2.0
#include "support/gemm.h"

#include <algorithm>
#include <cmath>

namespace mge::cpu {

double GemmSerialUs(const GemmSize& s, Isa isa, double copies_ns) {
  struct Speed {
    double flops_per_us;
    int64_t rows, lanes;
  };
  Speed speed = isa == Isa::kAvx512 ? Speed{160e3, 14, 16} : isa == Isa::kAvx2 ? Speed{85e3, 6, 8} : Speed{22e3, 6, 4};
  double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  // A tile with few rows or columns costs as much as a larger one, because its sums wait for each other.
  double columns = static_cast<double>((s.n + speed.lanes - 1) / speed.lanes * speed.lanes);
  double rows = std::max(m, std::min(4.0, 8.0 * static_cast<double>(speed.lanes) / columns));
  double arithmetic = 2.0 * rows * columns * k / speed.flops_per_us;
  double weights = StreamUs(4.0 * k * n);
  double rest = StreamUs(4.0 * m * n) + 1e-3 * copies_ns * m * k;
  return static_cast<double>(s.batch) * (0.03 + std::max(arithmetic, weights) + rest);
}

GemmSplit SplitGemm(const GemmSize& s, int columns, double serial_us) {
  GemmSplit split = {s.m, (s.n + columns - 1) / columns, s.batch, 1, 1};
  if (s.m == 0 || s.n == 0) split.batch = 0;
  if (split.batch == 0 || serial_us < kSplitUs) return split;
  constexpr double kChunkUs = 20;
  double wanted = std::min(static_cast<double>(MaxChunks(serial_us)), std::max(2.0, serial_us / kChunkUs)) /
                  static_cast<double>(s.batch);
  if (wanted <= 1) return split;
  // Splits rows first, because their copy is then made only once. Splits columns if there are few rows, with enough columns
  // per chunk to pay for the copy.
  constexpr int64_t kMinColumns = 128;
  auto ways = static_cast<int64_t>(std::ceil(wanted));
  split.row_chunks = std::clamp<int64_t>(s.m / kGemmMaxRows, 1, ways);
  int64_t least_panels = std::max<int64_t>(1, kMinColumns / columns);
  split.column_chunks =
      std::clamp<int64_t>(split.panels / least_panels, 1, (ways + split.row_chunks - 1) / split.row_chunks);
  if (split.row_chunks * split.column_chunks == 1) {
    constexpr int64_t kMinRows = 12;
    split.row_chunks = std::clamp<int64_t>(s.m / kMinRows, 1, std::min<int64_t>(ways, 4));
  }
  return split;
}

}  // namespace mge::cpu
