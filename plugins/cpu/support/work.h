// SPDX-License-Identifier: Apache-2.0
// Splits work into chunks and estimates its time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "isa.h"
#include "mge/plugin.hpp"

namespace mge::cpu {

// Work shorter than this on one thread is not split. A chunk takes at least about half of it.
inline constexpr double kSplitUs = 4.0;
inline constexpr uint64_t kMaxChunks = 64;
// A chunk of long work takes about as long as this by its estimate, since a run can stop only between chunks.
inline constexpr double kLongUs = 20e3;

// Returns the largest number of chunks for work of that length on one thread.
inline uint64_t MaxChunks(double serial_us) { return std::max(kMaxChunks, static_cast<uint64_t>(serial_us / kLongUs)); }

// `items` split into `count` ranges of `per_chunk` items; the last one may be shorter. Depends only on the problem's size.
struct Chunks {
  uint64_t items = 0;
  uint64_t per_chunk = 1;
  uint64_t count = 1;

  uint64_t begin(uint64_t chunk) const { return chunk * per_chunk; }
  uint64_t end(uint64_t chunk) const { return std::min(items, (chunk + 1) * per_chunk); }
};

inline Chunks SplitWork(uint64_t items, double us_per_item) {
  Chunks c = {items, std::max<uint64_t>(items, 1), 1};
  double total = us_per_item * static_cast<double>(items);
  if (total < kSplitUs || items < 2) return c;
  auto wanted = std::min<uint64_t>({MaxChunks(total), items, static_cast<uint64_t>(total / (kSplitUs / 2))});
  c.per_chunk = (items + wanted - 1) / wanted;
  c.count = (items + c.per_chunk - 1) / c.per_chunk;
  return c;
}

// Runs body(begin, end) for every chunk.
template <typename F>
void ForChunks(const mge_run* run, const Chunks& c, F&& body) {
  if (c.items == 0) return;
  ParallelFor(run, c.count, [&](uint64_t chunk) { body(c.begin(chunk), c.end(chunk)); });
}

// Returns one thread's time to stream so many bytes, depending on the cache that they fit into.
inline double StreamUs(double bytes) {
  double per_us = bytes <= (32 << 10) ? 150e3 : bytes <= (2 << 20) ? 65e3 : bytes <= ThisProcessor().l3_bytes ? 30e3 : 12e3;
  return bytes / per_us;
}

// Returns one thread's time to read and write so many bytes with windows that overlap. In the caches half of it is hidden
// behind the computation.
inline double WindowUs(double bytes) { return (bytes > ThisProcessor().l3_bytes ? 1 : 0.5) * StreamUs(bytes); }

// Estimates a run of `serial_us` of work, split by SplitWork, on the problem's threads.
inline double RunUs(const Problem& p, double serial_us) {
  constexpr double kCallUs = 0.02, kForkUs = 1.0;
  if (serial_us < kSplitUs || p.threads() < 2) return kCallUs + serial_us;
  double ways = std::min({static_cast<double>(p.threads()), static_cast<double>(kMaxChunks), serial_us / (kSplitUs / 2)});
  return kCallUs + kForkUs + serial_us / ways;
}

}  // namespace mge::cpu
