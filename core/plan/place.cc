// SPDX-License-Identifier: Apache-2.0
#include "core/plan/place.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mge {
namespace {

bool AliveTogether(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// Places in the given order, each at the smallest gap that fits among those already placed.
Placement PlaceInOrder(std::span<const Interval> intervals, std::span<const int32_t> order) {
  Placement p;
  p.offsets.assign(intervals.size(), 0);
  std::vector<int32_t> placed;  // sorted by offset
  for (int32_t id : order) {
    const Interval& x = intervals[id];
    if (x.bytes == 0) continue;
    int64_t end = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
    for (int32_t other : placed) {
      if (!AliveTogether(x, intervals[other])) continue;
      int64_t gap = p.offsets[other] - end;
      if (gap >= x.bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, p.offsets[other] + intervals[other].bytes);
    }
    p.offsets[id] = best >= 0 ? best : end;
    p.total = std::max(p.total, p.offsets[id] + x.bytes);
    auto at = std::upper_bound(placed.begin(), placed.end(), id,
                               [&](int32_t a, int32_t b) { return p.offsets[a] < p.offsets[b]; });
    placed.insert(at, id);
  }
  return p;
}

int64_t MostAlive(std::span<const Interval> intervals) {
  int32_t end = 0;
  for (const Interval& x : intervals) end = std::max(end, x.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(end) + 1, 0);
  for (const Interval& x : intervals) {
    change[x.first] += x.bytes;
    change[x.last + 1] -= x.bytes;
  }
  int64_t now = 0, most = 0;
  for (int64_t c : change) most = std::max(most, now += c);
  return most;
}

}  // namespace

Placement PlaceIntervals(std::span<const Interval> intervals) {
  std::vector<int32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  auto life = [&](int32_t i) { return static_cast<int64_t>(intervals[i].last) - intervals[i].first + 1; };
  auto bytes = [&](int32_t i) { return intervals[i].bytes; };

  Placement best;
  int64_t bound = MostAlive(intervals);
  auto attempt = [&](auto key) {
    if (!best.offsets.empty() && best.total == bound) return;
    std::vector<int32_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); });
    Placement p = PlaceInOrder(intervals, sorted);
    if (best.offsets.empty() || p.total < best.total) best = std::move(p);
  };
  attempt([&](int32_t i) { return bytes(i); });
  attempt([&](int32_t i) { return static_cast<double>(bytes(i)) * static_cast<double>(life(i)); });
  attempt([&](int32_t i) { return life(i); });
  attempt([&](int32_t i) { return -static_cast<int64_t>(intervals[i].first); });
  best.lower_bound = bound;
  return best;
}

}  // namespace mge
