// SPDX-License-Identifier: Apache-2.0
#include "core/conform/leak_check.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr int kSeries = 8, kRounds = 8;
constexpr int64_t kNoise = 16;  // smaller growth, in bytes, is ignored

int64_t EntriesOf(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
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

// Returns the growth during one round.
Leaks GrowthOf(const std::function<void()>& round, const std::function<int64_t()>& device_used) {
  const auto begin = std::chrono::steady_clock::now();
  const ProcessCounts before = ProcessCounts::Now();
  const int64_t used = device_used();
  InThreads(1, [&](int) { round(); });  // blocks that malloc caches per thread count as in use until the thread ends
  const ProcessCounts after = ProcessCounts::Now();
  const int64_t used_after = device_used();
  int64_t device = used_after - used;
  if (device > 0) {
    std::this_thread::sleep_for(std::chrono::steady_clock::now() - begin);
    device -= std::max<int64_t>(0, device_used() - used_after);
  }
  return {after.heap - before.heap, device, after.mapped - before.mapped};
}

}  // namespace

ProcessCounts ProcessCounts::Now() {
  struct mallinfo2 heap = mallinfo2();
  // mallinfo2() counts large blocks, which are mapped separately, in hblkhd.
  return {EntriesOf("/proc/self/task"), EntriesOf("/proc/self/fd"), static_cast<int64_t>(heap.uordblks + heap.hblkhd),
          MappedBytes()};
}

std::string ProcessCounts::MoreThan(const ProcessCounts& before) const {
  if (threads <= before.threads && files <= before.files) return {};
  return fmt::format("{} threads and {} open files (before: {} and {})", threads, files, before.threads, before.files);
}

Leaks MeasureLeaks(const std::function<void()>& round, const std::function<int64_t()>& device_used) {
  Leaks lost = {INT64_MAX, INT64_MAX, INT64_MAX};
  for (int series = 0; series < kSeries && (lost.heap || lost.device || lost.mapped); ++series) {
    std::vector<Leaks> rounds;
    for (int i = 0; i < kRounds; ++i) rounds.push_back(GrowthOf(round, device_used));
    for (int64_t Leaks::*kind : {&Leaks::heap, &Leaks::device, &Leaks::mapped}) {
      std::ranges::sort(rounds, {}, kind);
      const int64_t usual = rounds[kRounds / 8].*kind;
      lost.*kind = usual < kNoise ? 0 : std::min(lost.*kind, usual);
    }
  }
  if (lost.heap) lost.mapped = 0;
  return lost;
}

std::string FindLeak(std::string_view work, const std::vector<LeakPart>& parts,
                     const std::function<int64_t()>& device_used) {
  auto text_of = [&](const LeakPart& part) -> std::string {
    const Leaks lost = MeasureLeaks(part.round, device_used);
    const std::pair<int64_t, const char*> kinds[] = {
        {lost.heap, "the heap"}, {lost.device, "the device's memory"}, {lost.mapped, "memory that it maps beside the heap"}};
    for (const auto& [bytes, kind] : kinds) {
      if (bytes) return fmt::format("every {} loses {} bytes of {}, in {}", work, bytes, kind, part.slots);
    }
    return {};
  };
  const std::string text = text_of(parts.back());
  for (size_t i = 0; i + 1 < parts.size() && !text.empty(); ++i) {
    if (std::string found = text_of(parts[i]); !found.empty()) return found;
  }
  return text;
}

}  // namespace mge::conform
