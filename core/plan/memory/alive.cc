// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/alive.h"

#include <limits>

namespace mge {

AliveIntervals::AliveIntervals(int32_t steps) {
  while (leaves_ < static_cast<size_t>(steps)) leaves_ *= 2;
  tree_.resize(2 * leaves_);
}

void AliveIntervals::Add(int32_t id, int32_t first, int32_t last) {
  by_first_.emplace(first, id);
  size_t begin = leaves_ + static_cast<size_t>(first), end = leaves_ + static_cast<size_t>(last) + 1;
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2) tree_[begin++].push_back(id);
    if (end % 2) tree_[--end].push_back(id);
  }
}

void AliveIntervals::Find(int32_t first, int32_t last, std::vector<int32_t>& ids) const {
  for (size_t node = leaves_ + static_cast<size_t>(first); node > 0; node /= 2) {
    ids.insert(ids.end(), tree_[node].begin(), tree_[node].end());
  }
  constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  for (auto at = by_first_.upper_bound({first, kAll}); at != by_first_.end() && at->first <= last; ++at) {
    ids.push_back(at->second);
  }
}

}  // namespace mge
