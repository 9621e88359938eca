// SPDX-License-Identifier: Apache-2.0
// Memory placement: gives every buffer an offset so that buffers alive together do not overlap.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace mge {

struct Interval {
  int64_t bytes;  // rounded up to the alignment by the caller
  int32_t first;  // first and last step at which it is alive, both included
  int32_t last;
};

struct Placement {
  std::vector<int64_t> offsets;
  std::vector<int32_t> parts;       // of each interval: the part of the arena in which it lies
  std::vector<int64_t> part_bytes;  // one part, unless it would be larger than allowed
  int64_t total = 0;                // size of the arena, all parts
  int64_t lower_bound = 0;          // most bytes alive at one step: no placement can be smaller
};

// Best of several greedy best-fit orders (size; size x life; life; start), each searched among the gaps between the
// buffers alive at the same time. Deterministic. O(n^2) in the number of intervals. No part is larger than `part_limit`,
// unless a single interval is.
Placement PlaceIntervals(std::span<const Interval> intervals, int64_t part_limit = std::numeric_limits<int64_t>::max());

}  // namespace mge
