// SPDX-License-Identifier: Apache-2.0
// The threads of elementwise kernels, decided by measured times (cpu.operator_tuning).
//
// Without the setting, kernels are split by estimates (work.h). With it, a kernel of a listed element type uses several
// threads only if
//   overhead + work / threads < work,
// where `work` is the measured time of the kernel on one thread and `overhead` that of starting work on threads. Kernels of
// the other element types that can be listed are always split. Rule and overhead (the median over 2 and more threads) are
// those of MXNet's operator tuning, which measures operators where we measure kernels.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "mge/plugin.hpp"
#include "support/work.h"

namespace mge::cpu {

enum class Threads : uint8_t { kEstimated, kMeasured, kAlways };

// Returns how the threads of kernels with results of this type are decided.
Threads ThreadsOf(mge_dtype dtype);
// Fails if the value of cpu.operator_tuning is neither empty, 0, 1, nor a list of element types.
Result CheckOperatorTuning();

// Splits `items` into at least as many ranges as there are threads, if there are enough items.
Chunks SplitForThreads(const Chunks& estimated, uint32_t threads);

// The measured work of a kernel: the least time of its first runs, which use one thread. Thread-safe.
class MeasuredWork {
 public:
  // Returns whether that many chunks on the run's threads are faster than one thread. Returns false before the first runs.
  bool Pays(const mge_run* run, uint64_t chunks) const;
  // Calls body(), which does the work. Measures it in the first runs.
  template <typename F>
  void Measure(F&& body) {
    if (runs_.load(std::memory_order_relaxed) >= kRuns) return body();
    const auto begin = std::chrono::steady_clock::now();
    body();
    Add(std::chrono::steady_clock::now() - begin);
  }

 private:
  static constexpr int kRuns = 2;
  void Add(std::chrono::nanoseconds time);
  std::atomic<int64_t> least_ns_{INT64_MAX};
  std::atomic<int> runs_{0};
};

}  // namespace mge::cpu
