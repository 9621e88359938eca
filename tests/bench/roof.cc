// SPDX-License-Identifier: Apache-2.0
// Measures the machine's limits: float32 multiply-adds per second with the widest vectors, and bytes read per second.
// Compiled for this machine's processor (-march=native). The arguments are numbers of threads. Prints a JSON array with one
// object per argument.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

constexpr int kRepeats = 7;                   // the best repeat counts, because other work only slows it down
constexpr int kChains = 12;                   // independent registers: two units of 5 cycles need 10
constexpr int64_t kSteps = 5'000'000;         // multiply-adds of each chain
constexpr size_t kBytes = size_t{256} << 20;  // read by each thread; larger than its share of any cache

volatile float sink;

void MultiplyAdd() {
  Vector chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = Vector{} + static_cast<float>(i);
  const Vector factor = Vector{} + 0.999f, summand = Vector{} + 1e-3f;
  for (int64_t k = 0; k < kSteps; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + summand;
  }
  Vector sum = {};
  for (const Vector& v : chain) sum += v;
  sink = sum[0];
}

void Read(const std::vector<Vector>& memory) {
  Vector sum[8] = {};
  for (size_t i = 0; i + 8 <= memory.size(); i += 8) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) sum[j] += memory[i + j];
  }
  for (int j = 1; j < 8; ++j) sum[0] += sum[j];
  sink = sum[0][0];
}

// Returns the least time in seconds, of kRepeats, in which every thread does `work` once.
template <typename Work>
double Seconds(int threads, Work work) {
  double best = 1e9;
  for (int r = 0; r < kRepeats; ++r) {
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& t : others) t.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("[");
  for (int i = 1; i < argc; ++i) {
    const int threads = std::atoi(argv[i]);
    if (threads < 1 || threads > 1024) {
      std::fprintf(stderr, "bench_roof: '%s' is not a number of threads (1 to 1024)\n", argv[i]);
      return 2;
    }
    const double operations = 2.0 * kLanes * kChains * kSteps * threads;
    const double compute = Seconds(threads, [](int) { MultiplyAdd(); });
    std::vector<std::vector<Vector>> memory(static_cast<size_t>(threads));
    for (auto& part : memory) part.resize(kBytes / sizeof(Vector));
    const double read = Seconds(threads, [&](int t) { Read(memory[static_cast<size_t>(t)]); });
    std::printf("%s{\"threads\": %d, \"lanes\": %d, \"gflops\": %.1f, \"read_gb_per_s\": %.2f}", i > 1 ? ", " : "", threads,
                kLanes, operations / compute / 1e9, static_cast<double>(kBytes) * threads / read / 1e9);
  }
  std::printf("]\n");
  return 0;
}
