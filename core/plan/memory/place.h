// SPDX-License-Identifier: Apache-2.0
// The offset planner: gives every buffer an offset such that buffers alive at the same time do not overlap.
//
// Offsets that are fixed at plan time let one arena serve all temporaries of a run, without an allocation per value. To find
// the smallest arena ("dynamic storage allocation") is NP-hard. This file uses greedy best fit, as in Y. Pisarchyk and
// J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (arXiv 2001.03288):
//   1. Sorts the intervals by size; then, in further attempts, by size times life, by life, and by start.
//   2. In that order, places each interval between the placed intervals that are alive with it: in the smallest sufficient
//      gap, else behind the last one.
//   3. Keeps the attempt with the smallest total. Stops early if it equals the lower bound.
//   4. If many intervals are alive at the same time, an attempt takes quadratic time. Once the work reaches a limit, puts the
//      remaining intervals after all others and tries nothing more. The sharing planner (share.h) may then find less.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/plugin/stop.h"

namespace mge {

// A buffer and its life.
struct Interval {
  int64_t bytes;  // rounded up to the alignment by the caller
  int32_t first;  // first and last step at which it is alive, both included
  int32_t last;
  int32_t lane = 0;  // the queue that uses it; only for the sharing planner (share.h)
};

// The offsets of all intervals.
struct Placement {
  std::vector<int64_t> offsets;             // bytes from the start of the interval's part
  std::vector<int32_t> parts;               // index of the arena's part that holds the interval
  std::vector<int64_t> part_bytes;          // sizes of the parts; one part unless it would exceed the limit
  int64_t total = 0;                        // bytes of all parts
  int64_t lower_bound = 0;                  // most bytes alive at one step: no placement can be smaller
  std::optional<int64_t> match_range = {};  // that of the sharing planner; nullopt: the offset planner placed the buffers
  int64_t visits = 0;                       // placed intervals with which others were compared, in all attempts
};

// The work of a search.
struct PlaceWork {
  const StopControl* stop = nullptr;  // nullable; once the run must stop, the search ends with any placement
  int64_t limit = int64_t{1} << 23;   // of `visits`
  int64_t visits = 0;
  bool IsUsedUp() const { return visits > limit || !CheckStop(stop).ok(); }
};

// Returns the most bytes that are alive at one step.
int64_t MostBytesAlive(std::span<const Interval> intervals);

// Returns a placement. Deterministic. No part is larger than `part_limit`, except a part
// that holds a single interval above the limit. If `ratio` is set, two intervals use the same bytes only if neither is
// larger than the other times `ratio`. With 0, no two do.
Placement PlaceIntervals(std::span<const Interval> intervals, int64_t part_limit = std::numeric_limits<int64_t>::max(),
                         std::optional<int64_t> ratio = std::nullopt, PlaceWork work = {});

}  // namespace mge
