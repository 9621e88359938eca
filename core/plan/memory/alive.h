// SPDX-License-Identifier: Apache-2.0
// A set of intervals that finds those alive during another one, without a look at the rest.
//
// Two intervals are alive together if one begins during the other. So a search needs the intervals that begin during the
// given one, which a sorted set finds, and those that are alive at its first step. For the latter, a binary tree over the
// steps holds each interval at O(log n) nodes, whose ranges add up to its life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace mge {

class AliveIntervals {
 public:
  // Steps are in [0, steps).
  explicit AliveIntervals(int32_t steps);
  void Add(int32_t id, int32_t first, int32_t last);
  // Appends the ids of all intervals that are alive at a step of [first, last], each once.
  void Find(int32_t first, int32_t last, std::vector<int32_t>& ids) const;

 private:
  size_t leaves_ = 1;
  std::vector<std::vector<int32_t>> tree_;          // node i has the children 2i and 2i + 1; the leaves are steps
  std::set<std::pair<int32_t, int32_t>> by_first_;  // first step and id
};

}  // namespace mge
