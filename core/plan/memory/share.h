// SPDX-License-Identifier: Apache-2.0
// The sharing planner: passes freed buffers on to later values. It is the memory planner of NNVM (PlanMemory), with the
// match range of NNVM_EXEC_MATCH_RANGE.
//
// Algorithm, for a match range R:
//   1. Visits the steps in order. Gives each buffer that begins at the step a block, the largest buffer first. Then frees
//      the blocks of the buffers that end at the step.
//   2. A request of n bytes takes the smallest free block of n to n * R bytes. If there is none, it takes the largest free
//      block of n / R to n bytes, which grows to n bytes. If there is none, it takes a new block. R = 0 always takes a new
//      block. A free block is passed on only within its lane.
//   3. Puts the blocks one behind the other.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/plan/memory/place.h"

namespace mge {

// Returns the placement for one match range. Parts are limited as in PlaceIntervals(). If the blocks of a part are too large
// for it, they go to further parts; a block does not grow beyond the limit.
Placement ShareIntervals(std::span<const Interval> intervals, int64_t match_range,
                         int64_t part_limit = std::numeric_limits<int64_t>::max());

// Returns the smallest placement of the sharing planner with match ranges from 1 to `most`, and the smallest such range. If
// `most` is 0, uses the range 0. Once the run must stop, tries no further ranges.
Placement SweepMatchRanges(std::span<const Interval> intervals, int64_t most,
                           int64_t part_limit = std::numeric_limits<int64_t>::max(), const StopControl* stop = nullptr);

// The match range of a session.
struct MatchRange {
  int64_t most = 16;     // of the sharing planner
  bool binding = false;  // the user set it: it also limits which buffers the offset planner puts into the same memory
};

// Returns the smaller one of the placements of the offset planner and of the sharing planner. Once the run must stop,
// returns any placement at once.
Placement PlaceSmallest(std::span<const Interval> intervals, const MatchRange& range,
                        int64_t part_limit = std::numeric_limits<int64_t>::max(), const StopControl* stop = nullptr);

}  // namespace mge
