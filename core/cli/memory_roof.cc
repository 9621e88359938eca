// SPDX-License-Identifier: Apache-2.0
#include "core/cli/memory_roof.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

namespace mge::cli {
namespace {

using Vector = uint64_t __attribute__((vector_size(16)));
constexpr size_t kBytes = size_t{512} << 20;  // several times the size of most caches
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPieces = 16;  // each is read and timed by itself, so that some escape the work of other programs
constexpr size_t kPiece = kBytes / kPieces / sizeof(Vector);

volatile uint64_t sum_of_all;  // so that the compiler keeps the reads

// The sums are variables, not an array, so that they are registers at any level of optimisation.
void ReadAll(const Vector* memory, size_t count) {
  Vector a = {}, b = {}, c = {}, d = {};
  for (const Vector *at = memory, *end = memory + count / 4 * 4; at != end; at += 4) {
    a += at[0];
    b += at[1];
    c += at[2];
    d += at[3];
  }
  sum_of_all = (a + b + c + d)[0];
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Returns the seconds in which `threads` threads read a piece together, or 0 if one cannot start.
double ReadTogether(const Vector* piece, size_t threads) {
  const size_t part = kPiece / threads;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  bool started = true;
  try {
    for (size_t i = 1; i < threads; ++i) others.emplace_back(ReadAll, piece + i * part, part);
  } catch (const std::system_error&) {
    started = false;
  }
  ReadAll(piece, part);
  for (std::thread& t : others) t.join();
  return started ? std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() : 0;
}

}  // namespace

double MeasureReadBandwidth(int threads) {
  const std::unique_ptr<Vector, Free> memory(static_cast<Vector*>(std::aligned_alloc(kHugePage, kBytes)));
  if (!memory) return 0;
  (void)madvise(memory.get(), kBytes, MADV_HUGEPAGE);  // as weights lie; a hint
  std::memset(memory.get(), 1, kBytes);
  double best = 0;
  for (const size_t together : std::set<size_t>{1, static_cast<size_t>(std::max(threads, 1))}) {
    for (size_t p = 0; p < kPieces; ++p) {
      const double seconds = ReadTogether(memory.get() + p * kPiece, together);
      if (seconds > 0) best = std::max(best, static_cast<double>(kPiece / together * together * sizeof(Vector)) / seconds);
    }
  }
  return best;
}

}  // namespace mge::cli
