// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/share.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <vector>

namespace mge {
namespace {

// Memory that one buffer uses after the other.
struct Block {
  int64_t bytes = 0;
  int32_t lane = 0;
};

using FreeBlocks = std::multimap<int64_t, int32_t>;  // by size; equal sizes in the order of their release

class Sharer {
 public:
  Sharer(std::span<const Interval> intervals, int64_t range, int64_t part_limit)
      : intervals_(intervals), range_(range), limit_(part_limit), block_of_(intervals.size(), -1) {}

  Placement Run() {
    std::vector<int32_t> begins(intervals_.size());
    std::iota(begins.begin(), begins.end(), 0);
    std::vector<int32_t> ends = begins;
    std::stable_sort(begins.begin(), begins.end(), [&](int32_t a, int32_t b) {
      const Interval &x = intervals_[a], &y = intervals_[b];
      return x.first != y.first ? x.first < y.first : x.bytes > y.bytes;
    });
    std::stable_sort(ends.begin(), ends.end(),
                     [&](int32_t a, int32_t b) { return intervals_[a].last < intervals_[b].last; });
    auto ended = ends.begin();
    for (int32_t id : begins) {
      for (; intervals_[*ended].last < intervals_[id].first; ++ended) Free(*ended);
      if (intervals_[id].bytes > 0) block_of_[id] = Request(intervals_[id]);
    }
    return Place();
  }

 private:
  void Free(int32_t id) {
    if (block_of_[id] < 0) return;
    const Block& block = blocks_[block_of_[id]];
    free_[block.lane].emplace(block.bytes, block_of_[id]);
  }

  int32_t Request(const Interval& x) {
    if (range_ > 0) {
      FreeBlocks& free = free_[x.lane];
      const int64_t most =
          x.bytes > std::numeric_limits<int64_t>::max() / range_ ? std::numeric_limits<int64_t>::max() : x.bytes * range_;
      const auto middle = free.lower_bound(x.bytes);
      if (middle != free.end() && middle->first <= most) return Take(free, middle, x);
      if (middle != free.begin() && x.bytes <= limit_) {
        if (const auto at = std::prev(middle); at->first >= x.bytes / range_) return Take(free, at, x);
      }
    }
    blocks_.push_back({x.bytes, x.lane});
    return static_cast<int32_t>(blocks_.size()) - 1;
  }

  int32_t Take(FreeBlocks& free, FreeBlocks::iterator at, const Interval& x) {
    const int32_t block = at->second;
    free.erase(at);
    blocks_[block].bytes = std::max(blocks_[block].bytes, x.bytes);
    return block;
  }

  // Places the blocks one behind the other, each in the first part with enough room. Blocks never overlap: the sharing was
  // decided when intervals took blocks, whose sizes have grown to the largest interval in them.
  Placement Place() const {
    Placement p;
    p.offsets.assign(intervals_.size(), 0);
    p.parts.assign(intervals_.size(), 0);
    p.part_bytes = {0};
    p.match_range = range_;
    std::vector<int64_t> offsets(blocks_.size());
    std::vector<int32_t> parts(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      size_t part = 0;
      while (part < p.part_bytes.size() && p.part_bytes[part] > 0 && blocks_[b].bytes > limit_ - p.part_bytes[part]) ++part;
      if (part == p.part_bytes.size()) p.part_bytes.push_back(0);
      parts[b] = static_cast<int32_t>(part);
      offsets[b] = p.part_bytes[part];
      p.part_bytes[part] += blocks_[b].bytes;
      p.total += blocks_[b].bytes;
    }
    for (size_t i = 0; i < intervals_.size(); ++i) {
      if (block_of_[i] < 0) continue;
      p.offsets[i] = offsets[block_of_[i]];
      p.parts[i] = parts[block_of_[i]];
    }
    return p;
  }

  std::span<const Interval> intervals_;
  const int64_t range_, limit_;
  std::vector<Block> blocks_;
  std::vector<int32_t> block_of_;       // by interval; -1: no bytes
  std::map<int32_t, FreeBlocks> free_;  // by lane
};

// Returns the match range from which on a larger one changes nothing.
int64_t LargestRatio(std::span<const Interval> intervals) {
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (const Interval& x : intervals) {
    if (x.bytes > 0) least = std::min(least, x.bytes);
    most = std::max(most, x.bytes);
  }
  return most == 0 ? 1 : most / least + 1;
}

}  // namespace

Placement ShareIntervals(std::span<const Interval> intervals, int64_t match_range, int64_t part_limit) {
  Placement p = Sharer(intervals, match_range, part_limit).Run();
  p.lower_bound = MostBytesAlive(intervals);
  return p;
}

Placement SweepMatchRanges(std::span<const Interval> intervals, int64_t most, int64_t part_limit, const StopControl* stop) {
  Placement best = ShareIntervals(intervals, std::min<int64_t>(most, 1), part_limit);
  const int64_t end = std::min(most, LargestRatio(intervals));
  for (int64_t range = 2; range <= end && best.total > best.lower_bound && CheckStop(stop).ok(); ++range) {
    Placement p = ShareIntervals(intervals, range, part_limit);
    if (p.total < best.total) best = std::move(p);
  }
  return best;
}

Placement PlaceSmallest(std::span<const Interval> intervals, const MatchRange& range, int64_t part_limit,
                        const StopControl* stop) {
  const std::optional<int64_t> ratio = range.binding ? std::optional(range.most) : std::nullopt;
  Placement offset = PlaceIntervals(intervals, part_limit, ratio, {.stop = stop});
  if (offset.total == offset.lower_bound) return offset;
  Placement sharing = SweepMatchRanges(intervals, range.most, part_limit, stop);
  return sharing.total < offset.total ? sharing : offset;
}

}  // namespace mge
