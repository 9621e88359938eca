// SPDX-License-Identifier: Apache-2.0
#include "core/plan/color_paths.h"

#include <algorithm>

namespace mge {
namespace {

// The path with the greatest sum of importance.
struct LongestPath {
  int32_t first = -1;              // -1: the sum is 0
  std::vector<int32_t> next = {};  // by node; -1: the path ends
};

LongestPath BestPath(std::span<const std::vector<int32_t>> inputs, std::span<const int64_t> importance) {
  LongestPath path;
  path.next.assign(inputs.size(), -1);
  std::vector<int64_t> sums(inputs.size(), 0);  // of the best path that begins at the node
  int64_t best = 0;
  for (int32_t n = static_cast<int32_t>(inputs.size()) - 1; n >= 0; --n) {
    sums[n] += importance[n];
    if (sums[n] > best) {
      best = sums[n];
      path.first = n;
    }
    for (int32_t before : inputs[n]) {
      if (sums[n] <= sums[before]) continue;
      sums[before] = sums[n];
      path.next[before] = n;
    }
  }
  return path;
}

}  // namespace

std::vector<int32_t> ColorPaths(std::span<const std::vector<int32_t>> inputs, std::vector<int64_t> importance,
                                int32_t colors) {
  std::vector<int32_t> color_of(inputs.size(), -1);
  int32_t color = 0;
  for (; color + 1 < colors; ++color) {
    const LongestPath path = BestPath(inputs, importance);
    if (path.first < 0) break;
    for (int32_t n = path.first; n >= 0; n = path.next[n]) {
      if (importance[n] == 0) continue;
      color_of[n] = color;
      importance[n] = 0;
    }
  }
  std::replace(color_of.begin(), color_of.end(), -1, color);
  return color_of;
}

}  // namespace mge
