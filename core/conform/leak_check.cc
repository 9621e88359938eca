// SPDX-License-Identifier: Apache-2.0
#include "core/conform/leak_check.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "fmt/format.h"

namespace mge::conform {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int64_t kPage = 4096;
// Number of series that must confirm a leak. A driver that keeps a block in about half of the rounds passes some by chance.
constexpr int kSeries = 6;

int64_t EntriesOf(const char* folder) {
  std::error_code code;
  int64_t n = 0;
  for (auto it = std::filesystem::directory_iterator(folder, code); !code && it != std::filesystem::directory_iterator();
       it.increment(code))
    ++n;
  return n;
}

int64_t MappedBytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
#endif
}

// Returns the memory that some rounds lose. If `stretched`, the span lasts about three times as long as the rounds.
Leaks SpanOf(const LeakCheck& plan, int rounds, bool stretched) {
  auto held = [&] {
    const ProcessCounts now = ProcessCounts::Now();
    return Leaks{now.heap, plan.device_used(), now.mapped};
  };
  auto begin = std::chrono::steady_clock::now();
  const Leaks before = held();
  // In a thread of their own: blocks that malloc caches per thread count as in use until the thread ends.
  InThreads(1, [&](int) {
    for (int i = 0; i < rounds; ++i) plan.round();
  });
  if (stretched) {
    Seconds work = std::chrono::steady_clock::now() - begin;
    std::this_thread::sleep_for(std::clamp(2 * work, Seconds(0.02), Seconds(1)));
  }
  const Leaks after = held();
  return Leaks{after.heap - before.heap, after.device - before.device, after.mapped - before.mapped};
}

// Returns the smaller value of each member.
Leaks Least(const Leaks& a, const Leaks& b) {
  return {std::min(a.heap, b.heap), std::min(a.device, b.device), std::min(a.mapped, b.mapped)};
}

// Reduces `lost` to the growth that seven of eight single rounds reach. Between the rounds of a driver that keeps blocks at
// random are some that keep none.
void ReduceToUsual(const LeakCheck& plan, Leaks* lost) {
  const size_t count = static_cast<size_t>(std::clamp(2 * plan.rounds, 8, 24));
  std::vector<Leaks> rounds;
  for (size_t i = 0; i < count; ++i) rounds.push_back(SpanOf(plan, 1, false));
  for (int64_t Leaks::*kind : {&Leaks::heap, &Leaks::device, &Leaks::mapped}) {
    std::ranges::sort(rounds, {}, kind);
    lost->*kind = std::min(lost->*kind, std::max<int64_t>(rounds[count / 8].*kind, 0));
  }
}

}  // namespace

ProcessCounts ProcessCounts::Now() {
  struct mallinfo2 heap = mallinfo2();
  // mallinfo2() counts large blocks, which are mapped separately, in hblkhd.
  return {EntriesOf("/proc/self/task"), EntriesOf("/proc/self/fd"), static_cast<int64_t>(heap.uordblks + heap.hblkhd),
          MappedBytes()};
}

std::string ProcessCounts::MoreThan(const ProcessCounts& before) const {
  std::string out;
  auto add = [&](int64_t more, std::string_view what) {
    if (more > 0) out += fmt::format("{}{} more {}{}", out.empty() ? "" : ", ", more, what, more > 1 ? "s" : "");
  };
  add(threads - before.threads, "thread");
  add(files - before.files, "open file");
  return out;
}

Leaks MeasureLeaks(const LeakCheck& plan) {
  const int64_t noise = plan.rounds * int64_t{16};  // smaller leaks of heap bytes are ignored
  SpanOf(plan, plan.first, false);
  plan.began();
  Leaks least = {INT64_MAX, INT64_MAX, INT64_MAX}, plain, stretched;
  auto maps = [&] { return least.mapped >= plan.rounds * kPage; };
  auto nothing = [&] { return least.heap < noise && least.device <= 0 && !maps(); };
  // After four spans measures again, and longer. A thread that only frees memory caches some blocks of every size, and this
  // cache fills slowly. The device may have other users: their use grows with time, a leak grows with the rounds.
  for (int i = 0; i < 12 && !nothing(); ++i) {
    const bool longer = i >= 4 && i % 2;
    const Leaks span = SpanOf(plan, plan.rounds, longer);
    least = Least(least, span);
    if (i >= 4) (longer ? stretched : plain).device += span.device;
  }
  Leaks out;
  if (least.heap >= noise) out.heap = least.heap / plan.rounds;
  if (!out.heap && maps()) out.mapped = least.mapped / plan.rounds;
  if (least.device > 0 && stretched.device * 2 < plain.device * 3)
    out.device = (least.device + plan.rounds - 1) / plan.rounds;
  for (int again = 0; again < kSeries && (out.heap || out.device || out.mapped); ++again) ReduceToUsual(plan, &out);
  return out;
}

std::string FindLeak(const LeakCheck& plan, std::string_view round, const std::vector<LeakPart>& parts) {
  auto text_of = [&](const Leaks& lost, const char* slots) -> std::string {
    const std::pair<int64_t, const char*> kinds[] = {
        {lost.heap, "the heap"}, {lost.device, "the device's memory"}, {lost.mapped, "memory that it maps beside the heap"}};
    for (const auto& [bytes, kind] : kinds) {
      if (bytes) return fmt::format("every {} loses {} bytes of {}, in {}", round, bytes, kind, slots);
    }
    return {};
  };
  LeakCheck one = plan;
  one.round = parts.back().round;
  const std::string text = text_of(MeasureLeaks(one), parts.back().slots);
  one.began = [] {};
  one.rounds = std::min(plan.rounds, 4);
  for (size_t i = 0; i + 1 < parts.size() && !text.empty(); ++i) {
    one.round = parts[i].round;
    if (std::string found = text_of(MeasureLeaks(one), parts[i].slots); !found.empty()) return found;
  }
  return text;
}

}  // namespace mge::conform
