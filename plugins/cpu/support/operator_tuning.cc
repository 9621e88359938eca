// SPDX-License-Identifier: Apache-2.0
#include "support/operator_tuning.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "settings.h"

namespace mge::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr struct {
  std::string_view name;
  mge_dtype dtype;
} kTypes[] = {{"float32", MGE_DTYPE_F32}, {"float64", MGE_DTYPE_F64}, {"float16", MGE_DTYPE_F16}, {"int8", MGE_DTYPE_I8},
              {"uint8", MGE_DTYPE_U8},    {"int32", MGE_DTYPE_I32},   {"int64", MGE_DTYPE_I64}};

// Calls use(word) for each word between commas, in lower case.
template <typename F>
void ForWords(std::string_view text, F&& use) {
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ',') {
      if (text[i] != ' ') word += static_cast<char>(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
      continue;
    }
    use(word);
    word.clear();
  }
}

// Returns the time in nanoseconds that it takes to start work on several threads and wait for it: the median over 2 threads
// up to cpu.operator_tuning_threads. Measured at the first call in the process.
double OverheadNs(const mge_run* run) {
  static const double overhead = [run] {
    const int64_t setting = ToInt(SettingOf(kTuningCoresSetting));
    const int64_t half = std::max<int64_t>(2, std::thread::hardware_concurrency() / 2);
    const int64_t most = std::min<int64_t>(setting < 0 ? half : setting, run->width);
    if (most < 2) return std::numeric_limits<double>::infinity();
    constexpr int kRepetitions = 8;
    std::vector<double> samples;
    for (int64_t threads = 1; threads <= most; ++threads) {  // the first sample wakes the threads and is dropped
      const auto begin = Clock::now();
      for (int i = 0; i < kRepetitions; ++i) {
        ParallelFor(run, static_cast<uint64_t>(std::max<int64_t>(threads, 2)), [](uint64_t) {});
      }
      const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
      if (threads > 1) samples.push_back(time.count() / kRepetitions);
    }
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
    return samples[samples.size() / 2];
  }();
  return overhead;
}

}  // namespace

Threads ThreadsOf(mge_dtype dtype) {
  const std::string_view text = SettingOf(kOperatorTuningSetting);
  const auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.dtype == dtype; });
  if (text.empty() || known == std::end(kTypes)) return Threads::kEstimated;
  bool listed = text == "1";
  ForWords(text, [&](const std::string& word) { listed |= word == known->name; });
  return listed ? Threads::kMeasured : Threads::kAlways;
}

Result CheckOperatorTuning() {
  const std::string_view text = SettingOf(kOperatorTuningSetting);
  if (text.empty() || text == "0" || text == "1") return {};
  Result result;
  ForWords(text, [&](const std::string& word) {
    if (std::any_of(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == word; })) return;
    result = {MGE_INVALID_ARGUMENT,
              "cpu.operator_tuning: '" + word +
                  "' is neither 0, 1, nor one of float32, float64, float16, int8, uint8, int32, int64"};
  });
  return result;
}

Chunks SplitForThreads(const Chunks& estimated, uint32_t threads) {
  Chunks c = estimated;
  const uint64_t wanted = std::min<uint64_t>(c.items, std::max<uint64_t>(c.count, threads));
  if (wanted < 2) return c;
  c.per_chunk = (c.items + wanted - 1) / wanted;
  c.count = (c.items + c.per_chunk - 1) / c.per_chunk;
  return c;
}

bool MeasuredWork::Pays(const mge_run* run, uint64_t chunks) const {
  const auto threads = static_cast<double>(std::min<uint64_t>(run->width, chunks));
  if (threads < 2 || runs_.load(std::memory_order_acquire) < kRuns) return false;
  const auto work = static_cast<double>(least_ns_.load(std::memory_order_relaxed));
  return OverheadNs(run) + work / threads < work;
}

void MeasuredWork::Add(std::chrono::nanoseconds time) {
  for (int64_t least = least_ns_; time.count() < least && !least_ns_.compare_exchange_weak(least, time.count());) continue;
  runs_.fetch_add(1, std::memory_order_release);
}

}  // namespace mge::cpu
