// SPDX-License-Identifier: Apache-2.0
// An axis of a chart: its range, its ticks and their texts.
#pragma once

#include <string>
#include <vector>

namespace mge::html {

enum class Unit { kNumber, kCount, kBytes, kMicroseconds };

struct Axis {
  std::string title = {};
  double low = 0, high = 1;  // low < high; both above 0 if the axis is logarithmic
  Unit unit = Unit::kNumber;
  bool logarithmic = false;
  std::vector<std::string> lanes = {};  // names of rows, in place of numbers: row i lies between i and i + 1
};

// Returns an axis of the range of the values with a little space, from 0 on if `from_zero`. Values that are not finite do not
// count. It is logarithmic if all values are above 0 and differ by more than 100 times.
Axis AxisOf(std::string title, const std::vector<double>& values, Unit unit, bool from_zero);

struct Tick {
  double value = 0;
  std::string text;
};

// Returns about `count` round values of the axis, in ascending order, with their texts.
std::vector<Tick> TicksOf(const Axis& axis, int count);

// Returns the place of a value in the range, from 0 to 1. Values beyond the range are at its ends.
double PlaceOf(const Axis& axis, double value);

}  // namespace mge::html
