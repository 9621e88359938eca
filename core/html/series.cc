// SPDX-License-Identifier: Apache-2.0
#include "core/html/series.h"

#include <algorithm>
#include <cmath>

namespace mge::html {

void Series::Group::Join(const Group& later) {
  if (count == 0) {
    *this = later;
    return;
  }
  count += later.count;
  x = later.x;
  sum += later.sum;
  low = std::min(low, later.low);
  high = std::max(high, later.high);
}

void Series::Add(double x, double y) {
  if (!std::isfinite(y)) {
    ++not_finite_;
    return;
  }
  last_ = y;
  open_.Join({1, x, y, y, y});
  if (open_.count < each_) return;
  points_.push_back(open_);
  open_ = {};
  if (points_.size() < kMaxPoints) return;
  for (size_t i = 0; i < kMaxPoints / 2; ++i) {
    points_[i] = points_[2 * i];
    points_[i].Join(points_[2 * i + 1]);
  }
  points_.resize(kMaxPoints / 2);
  each_ *= 2;
}

}  // namespace mge::html
