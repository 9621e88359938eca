// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/place.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mge {
namespace {

bool AliveTogether(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// Returns whether a rule on the ratio of sizes keeps the intervals apart.
bool RatioForbids(const Interval& a, const Interval& b, std::optional<int64_t> ratio) {
  if (!ratio) return false;
  const auto [small, large] = std::minmax(a.bytes, b.bytes);
  return large > 0 && (*ratio == 0 || small < (large - 1) / *ratio + 1);
}

// The intervals in one part of the arena, sorted by offset.
using Part = std::vector<int32_t>;

// Returns the start of the smallest gap that holds `x`, between the part's intervals that may not use its bytes. If there
// is none, returns their end.
int64_t OffsetIn(const Part& part, const Interval& x, std::span<const Interval> intervals, const Placement& p,
                 std::optional<int64_t> ratio) {
  int64_t end = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
  for (int32_t other : part) {
    if (!AliveTogether(x, intervals[other]) && !RatioForbids(x, intervals[other], ratio)) continue;
    int64_t gap = p.offsets[other] - end;
    if (gap >= x.bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, p.offsets[other] + intervals[other].bytes);
  }
  return best >= 0 ? best : end;
}

// Places the intervals in the given order, each in the first part that has a place for it.
Placement PlaceInOrder(std::span<const Interval> intervals, std::span<const int32_t> order, int64_t part_limit,
                       std::optional<int64_t> ratio) {
  Placement p;
  p.offsets.assign(intervals.size(), 0);
  p.parts.assign(intervals.size(), 0);
  std::vector<Part> parts(1);
  p.part_bytes = {0};
  for (int32_t id : order) {
    const Interval& x = intervals[id];
    if (x.bytes == 0) continue;
    size_t in = 0;
    int64_t offset = OffsetIn(parts[0], x, intervals, p, ratio);
    while (offset > 0 && offset + x.bytes > part_limit) {
      if (++in == parts.size()) {
        parts.emplace_back();
        p.part_bytes.push_back(0);
      }
      offset = OffsetIn(parts[in], x, intervals, p, ratio);
    }
    p.offsets[id] = offset;
    p.parts[id] = static_cast<int32_t>(in);
    p.total -= p.part_bytes[in];
    p.part_bytes[in] = std::max(p.part_bytes[in], offset + x.bytes);
    p.total += p.part_bytes[in];
    Part& placed = parts[in];
    auto at = std::upper_bound(placed.begin(), placed.end(), id,
                               [&](int32_t a, int32_t b) { return p.offsets[a] < p.offsets[b]; });
    placed.insert(at, id);
  }
  return p;
}

}  // namespace

int64_t MostBytesAlive(std::span<const Interval> intervals) {
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

Placement PlaceIntervals(std::span<const Interval> intervals, int64_t part_limit, std::optional<int64_t> ratio) {
  std::vector<int32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  auto life = [&](int32_t i) { return static_cast<int64_t>(intervals[i].last) - intervals[i].first + 1; };
  auto bytes = [&](int32_t i) { return intervals[i].bytes; };

  Placement best;
  int64_t bound = MostBytesAlive(intervals);
  auto attempt = [&](auto key) {
    if (!best.offsets.empty() && best.total == bound) return;
    std::vector<int32_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); });
    Placement p = PlaceInOrder(intervals, sorted, part_limit, ratio);
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
