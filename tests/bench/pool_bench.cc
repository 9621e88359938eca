// SPDX-License-Identifier: Apache-2.0
// bench_pool: nanoseconds of one acquire and release of each ready-made pool, by the size and number of blocks in use.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "core/plugin/memory/pool.h"
#include "fmt/format.h"

namespace {

class Heap : public mge::SlabProvider {
 public:
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override {
    void* address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    return mge_slab{sizeof(mge_slab), 0, address, address, nullptr, bytes};
  }
  void Release(const mge_slab& slab) override { std::free(slab.address); }
  mge::MemoryInfo Info() const override { return {}; }
  bool Reached(const mge_fence_point&, bool) const override { return true; }
};

// Returns the least time of several rounds, because other work on the machine can only add time.
double NsPerPair(std::string_view name, uint64_t bytes, size_t in_use) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 20, kPairs = 20000;
  Heap heap;
  auto pool = *mge::MakePool(name, {}, &heap);
  std::vector<mge_reservation> held;
  for (size_t i = 0; i < in_use; ++i) held.push_back(*pool->Acquire(bytes + 64 * (i % 7)));
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    auto begin = Clock::now();
    for (int i = 0; i < kPairs; ++i) pool->Release(*pool->Acquire(bytes));
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kPairs);
  }
  for (const mge_reservation& r : held) pool->Release(r);
  return best;
}

}  // namespace

int main() {
  fmt::print("{:<10}{:>12}{:>10}{:>12}\n", "POOL", "BYTES", "IN USE", "NS A PAIR");
  for (std::string_view name : {"naive", "round", "growing"}) {
    for (uint64_t bytes : {uint64_t{256}, uint64_t{1} << 20}) {
      for (size_t in_use : {size_t{0}, size_t{200}}) {
        fmt::print("{:<10}{:>12}{:>10}{:>12.1f}\n", name, bytes, in_use, NsPerPair(name, bytes, in_use));
      }
    }
  }
}
