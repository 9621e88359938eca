// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/place.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/plan/memory/alive.h"

namespace mge {
namespace {

// Returns whether a rule on the ratio of sizes keeps the intervals apart.
bool RatioForbids(const Interval& a, const Interval& b, std::optional<int64_t> ratio) {
  if (!ratio) return false;
  const auto [small, large] = std::minmax(a.bytes, b.bytes);
  return large > 0 && (*ratio == 0 || small < (large - 1) / *ratio + 1);
}

bool AliveTogether(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// Places intervals one after the other, in an order that the caller chooses: the quality depends on it, and several orders are
// tried. Each interval goes into the smallest gap that holds it (best fit) among the placed ones that are alive at the same
// time. All others may share its bytes. Work is counted in visits of other intervals: when it is used up, the rest is placed
// behind everything, so that planning stays bounded.
class Placer {
 public:
  Placer(std::span<const Interval> intervals, int64_t part_limit, std::optional<int64_t> ratio, PlaceWork& work)
      : intervals_(intervals), limit_(part_limit), ratio_(ratio), work_(work), alive_(StepsOf(intervals)) {
    out_.offsets.assign(intervals.size(), 0);
    out_.parts.assign(intervals.size(), 0);
    out_.part_bytes = {0};
  }

  // Places the intervals in the given order, each in the first part that has a place for it.
  Placement Run(std::span<const int32_t> order) {
    for (int32_t id : order) {
      const Interval& x = intervals_[id];
      if (x.bytes == 0) continue;
      Place(id, work_.IsUsedUp() ? AtEnd(x) : FirstPlace(x));
    }
    return std::move(out_);
  }

 private:
  struct At {
    size_t part;
    int64_t offset;
  };

  static int32_t StepsOf(std::span<const Interval> intervals) {
    int32_t steps = 0;
    for (const Interval& x : intervals) steps = std::max(steps, x.last + 1);
    return steps;
  }

  bool Fits(const Interval& x, int64_t offset) const { return offset == 0 || offset <= limit_ - x.bytes; }

  // Returns the place after everything.
  At AtEnd(const Interval& x) const {
    const size_t last = out_.part_bytes.size() - 1;
    return Fits(x, out_.part_bytes[last]) ? At{last, out_.part_bytes[last]} : At{last + 1, 0};
  }

  // Returns the start of the smallest gap that holds `x`, between the intervals of the first possible part that may not use
  // its bytes. If there is none, returns their end.
  At FirstPlace(const Interval& x) {
    FindOthers(x);
    auto other = others_.begin();
    for (size_t part = 0;; ++part) {
      int64_t end = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
      for (; other != others_.end() && static_cast<size_t>(out_.parts[*other]) == part; ++other) {
        const int64_t gap = out_.offsets[*other] - end;
        if (gap >= x.bytes && gap < best_gap) {
          best = end;
          best_gap = gap;
        }
        end = std::max(end, out_.offsets[*other] + intervals_[*other].bytes);
      }
      const int64_t offset = best >= 0 ? best : end;
      if (Fits(x, offset)) return {part, offset};
    }
  }

  // Sets others_ to the placed intervals that may not use the bytes of `x`, sorted by part and offset.
  void FindOthers(const Interval& x) {
    others_.clear();
    if (ratio_) {
      std::copy_if(placed_.begin(), placed_.end(), std::back_inserter(others_), [&](int32_t other) {
        return AliveTogether(x, intervals_[other]) || RatioForbids(x, intervals_[other], ratio_);
      });
      work_.visits += static_cast<int64_t>(placed_.size());
    } else {
      alive_.Find(x.first, x.last, others_);
      work_.visits += static_cast<int64_t>(others_.size()) + 1;
    }
    std::sort(others_.begin(), others_.end(), [&](int32_t a, int32_t b) {
      return std::pair(out_.parts[a], out_.offsets[a]) < std::pair(out_.parts[b], out_.offsets[b]);
    });
  }

  void Place(int32_t id, At at) {
    const Interval& x = intervals_[id];
    if (at.part == out_.part_bytes.size()) out_.part_bytes.push_back(0);
    out_.parts[id] = static_cast<int32_t>(at.part);
    out_.offsets[id] = at.offset;
    int64_t& bytes = out_.part_bytes[at.part];
    out_.total -= bytes;
    bytes = std::max(bytes, at.offset + x.bytes);
    out_.total += bytes;
    if (ratio_) {
      placed_.push_back(id);
    } else {
      alive_.Add(id, x.first, x.last);
    }
  }

  std::span<const Interval> intervals_;
  const int64_t limit_;
  const std::optional<int64_t> ratio_;
  PlaceWork& work_;
  Placement out_;
  AliveIntervals alive_;         // without a ratio: the placed intervals
  std::vector<int32_t> placed_;  // with a ratio: the placed intervals
  std::vector<int32_t> others_;
};

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

Placement PlaceIntervals(std::span<const Interval> intervals, int64_t part_limit, std::optional<int64_t> ratio,
                         PlaceWork work) {
  std::vector<int32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  auto life = [&](int32_t i) { return static_cast<int64_t>(intervals[i].last) - intervals[i].first + 1; };
  auto bytes = [&](int32_t i) { return intervals[i].bytes; };

  Placement best;
  int64_t bound = MostBytesAlive(intervals);
  auto attempt = [&](auto key) {
    if (!best.offsets.empty() && (best.total == bound || work.IsUsedUp())) return;
    std::vector<int32_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); });
    Placement p = Placer(intervals, part_limit, ratio, work).Run(sorted);
    if (best.offsets.empty() || p.total < best.total) best = std::move(p);
  };
  attempt([&](int32_t i) { return bytes(i); });
  attempt([&](int32_t i) { return static_cast<double>(bytes(i)) * static_cast<double>(life(i)); });
  attempt([&](int32_t i) { return life(i); });
  attempt([&](int32_t i) { return -static_cast<int64_t>(intervals[i].first); });
  best.lower_bound = bound;
  best.visits = work.visits;
  return best;
}

}  // namespace mge
