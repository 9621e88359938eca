// SPDX-License-Identifier: Apache-2.0
// A series of numbers of any length, in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/html/chart.h"

namespace mge::html {

// Keeps at most kMaxPoints points of all that are added. Each point is the mean of the same number of successive numbers, with
// the lowest and the highest of them. Numbers that are not finite are only counted.
class Series {
 public:
  static constexpr size_t kMaxPoints = 1000;

  void Add(double x, double y);

  bool empty() const { return points_.empty() && open_.count == 0; }
  uint64_t not_finite() const { return not_finite_; }
  double last() const { return last_; }  // the newest finite number
  std::vector<Point> Means() const {
    return Read([](const Group& g) { return g.sum / static_cast<double>(g.count); });
  }
  std::vector<Point> Lows() const {
    return Read([](const Group& g) { return g.low; });
  }
  std::vector<Point> Highs() const {
    return Read([](const Group& g) { return g.high; });
  }

 private:
  struct Group {
    uint64_t count = 0;
    double x = 0, sum = 0, low = 0, high = 0;  // x of the last number

    void Join(const Group& later);
  };

  template <typename Value>
  std::vector<Point> Read(const Value& value) const {
    std::vector<Point> out;
    for (const Group& g : points_) out.push_back({g.x, value(g)});
    if (open_.count > 0) out.push_back({open_.x, value(open_)});
    return out;
  }

  std::vector<Group> points_;
  Group open_;         // has less than `each_` numbers
  uint64_t each_ = 1;  // numbers in a point
  uint64_t not_finite_ = 0;
  double last_ = 0;
};

}  // namespace mge::html
