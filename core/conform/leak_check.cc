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
Leaks Held(const LeakCheck& plan) {
  const ProcessCounts now = ProcessCounts::Now();
  return {now.heap, plan.device_used(), now.mapped};
}

// Returns the memory that some rounds lose. If `stretched`, the span lasts about three times as long as the rounds.
absl::StatusOr<Leaks> SpanOf(const LeakCheck& plan, int rounds, bool stretched) {
  auto begin = std::chrono::steady_clock::now();
  const Leaks before = Held(plan);
  absl::Status status;
  InFreshThread([&] {
    for (int i = 0; i < rounds && status.ok(); ++i) status = plan.round();
  });
  MGE_RETURN_IF_ERROR(status);
  if (stretched) {
    Seconds work = std::chrono::steady_clock::now() - begin;
    std::this_thread::sleep_for(std::clamp(2 * work, Seconds(0.02), Seconds(1)));
  }
  const Leaks after = Held(plan);
  return Leaks{after.heap - before.heap, after.device - before.device, after.mapped - before.mapped};
}

// Returns the smaller value of each member.
Leaks Least(const Leaks& a, const Leaks& b) {
  return {std::min(a.heap, b.heap), std::min(a.device, b.device), std::min(a.mapped, b.mapped)};
}

// Runs single rounds and returns the growth that seven of eight rounds reach. Between the rounds of a driver that keeps
// blocks at random are some that keep none.
absl::StatusOr<Leaks> UsualGrowth(const LeakCheck& plan) {
  const size_t count = static_cast<size_t>(std::clamp(2 * plan.rounds, 8, 24));
  std::vector<int64_t> heap, device, mapped;
  for (size_t i = 0; i < count; ++i) {
    MGE_ASSIGN_OR_RETURN(Leaks one, SpanOf(plan, 1, false));
    heap.push_back(one.heap), device.push_back(one.device), mapped.push_back(one.mapped);
  }
  for (std::vector<int64_t>* growth : {&heap, &device, &mapped}) std::sort(growth->begin(), growth->end());
  return Leaks{heap[count / 8], device[count / 8], mapped[count / 8]};
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

absl::StatusOr<Leaks> MeasureLeaks(const LeakCheck& plan) {
  const int64_t noise = plan.rounds * int64_t{16};  // smaller leaks of heap bytes are ignored
  MGE_RETURN_IF_ERROR(SpanOf(plan, plan.first, false).status());
  plan.began();
  Leaks least = {INT64_MAX, INT64_MAX, INT64_MAX}, plain, stretched;
  auto maps = [&] { return least.mapped >= plan.rounds * kPage; };
  auto nothing = [&] { return least.heap < noise && least.device <= 0 && !maps(); };
  for (int i = 0; i < 4 && !nothing(); ++i) {
    MGE_ASSIGN_OR_RETURN(Leaks span, SpanOf(plan, plan.rounds, false));
    least = Least(least, span);
  }
  // Measures again, and longer. A thread that only frees memory caches some blocks of every size, and this cache fills
  // slowly. The device may have other users: their use grows with time, a leak grows with the rounds.
  for (int i = 0; i < 8 && !nothing(); ++i) {
    MGE_ASSIGN_OR_RETURN(Leaks span, SpanOf(plan, plan.rounds, i % 2));
    least = Least(least, span);
    (i % 2 ? stretched : plain).device += span.device;
  }
  Leaks out;
  if (least.heap >= noise) out.heap = least.heap / plan.rounds;
  if (!out.heap && maps()) out.mapped = least.mapped / plan.rounds;
  if (least.device > 0 && stretched.device * 2 < plain.device * 3)
    out.device = (least.device + plan.rounds - 1) / plan.rounds;
  for (int again = 0; again < 2 && (out.heap || out.device || out.mapped); ++again) {
    MGE_ASSIGN_OR_RETURN(Leaks usual, UsualGrowth(plan));
    out = Least(out,
                {std::max<int64_t>(usual.heap, 0), std::max<int64_t>(usual.device, 0), std::max<int64_t>(usual.mapped, 0)});
  }
  return out;
}

absl::StatusOr<std::string> FindLeak(const LeakCheck& plan, std::string_view round, const std::vector<LeakPart>& parts) {
  auto text_of = [&](const Leaks& lost, const char* slots) {
    auto text = [&](int64_t bytes, std::string_view what) {
      return fmt::format("every {} loses {} bytes of {}, in {}", round, bytes, what, slots);
    };
    return lost.heap     ? text(lost.heap, "the heap")
           : lost.device ? text(lost.device, "the device's memory")
           : lost.mapped ? text(lost.mapped, "memory that it maps beside the heap")
                         : std::string();
  };
  LeakCheck one = plan;
  one.round = parts.back().round;
  MGE_ASSIGN_OR_RETURN(Leaks whole, MeasureLeaks(one));
  std::string text = text_of(whole, parts.back().slots);
  one.began = [] {};
  one.rounds = std::min(plan.rounds, 4);
  for (size_t i = 0; i + 1 < parts.size() && !text.empty(); ++i) {
    one.round = parts[i].round;
    MGE_ASSIGN_OR_RETURN(Leaks lost, MeasureLeaks(one));
    if (std::string found = text_of(lost, parts[i].slots); !found.empty()) return found;
  }
  return text;
}

}  // namespace mge::conform
