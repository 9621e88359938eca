// SPDX-License-Identifier: Apache-2.0
// Learning rates over the time of a training, for the input "learning_rate" of each step, one row for each kind; `mge train` uses
// them. Needs nothing else of MGE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mge {

// The name of a schedule, and how its rate changes.
struct ScheduleRow {
  std::string_view name, doc;
};

inline constexpr ScheduleRow kSchedules[] = {
    {"constant", "always the learning rate"},
    {"cosine", "falls to 0 along half a wave"},
    {"linear", "falls to 0 along a line"},
    {"step", "is multiplied by a factor (step_factor) a number of times (step_count) at equal distances"},
    {"table", "is multiplied by factors between points (points)"},
    {"one_cycle", "rises from 1/25 of the rate along half a wave for 0.3 of the training, then falls to 1/10000 of that"},
};

// A point of a table: from this part of the training on, the factor changes to that of the next point along a line.
struct SchedulePoint {
  double part, factor;
};

// A learning rate that depends on how far a training is.
struct Schedule {
  std::string_view name = "constant";      // of a row
  double rate = 0.01;                      // the learning rate that the schedule changes
  double warmup = 0;                       // in [0, 1): the part of the training in which it rises from 0 along a line
  double step_factor = 0.1;                // for "step"
  int64_t step_count = 2;                  // for "step"
  std::vector<SchedulePoint> points = {};  // for "table": with rising parts, at least one

  // Returns the rate at a part of the training from 0 to 1. An unknown name is like "constant".
  double At(double part) const {
    if (part < warmup) return rate * part / warmup;
    const double rest = std::clamp((part - warmup) / (1 - warmup), 0.0, 1.0);
    if (name == "cosine") return Wave(rate, 0, rest);
    if (name == "linear") return rate * (1 - rest);
    if (name == "step") {
      const double steps = std::floor(rest * static_cast<double>(step_count + 1));
      return rate * std::pow(step_factor, std::min(steps, static_cast<double>(step_count)));
    }
    if (name == "table") return rate * FactorAt(rest);
    if (name == "one_cycle") {
      constexpr double kRise = 0.3, kFirst = 1.0 / 25, kLast = kFirst / 1e4;
      return rest < kRise ? Wave(rate * kFirst, rate, rest / kRise) : Wave(rate, rate * kLast, (rest - kRise) / (1 - kRise));
    }
    return rate;
  }

 private:
  double FactorAt(double part) const {
    for (size_t i = 0; i < points.size(); ++i) {
      if (part > points[i].part) continue;
      if (i == 0) return points[0].factor;
      const SchedulePoint &a = points[i - 1], &b = points[i];
      return b.part > a.part ? a.factor + (b.factor - a.factor) * (part - a.part) / (b.part - a.part) : b.factor;
    }
    return points.empty() ? 1 : points.back().factor;
  }
  // Returns a value on half a wave from `from` to `to`.
  static double Wave(double from, double to, double part) {
    constexpr double kPi = 3.14159265358979323846;
    return to + (from - to) * 0.5 * (1 + std::cos(kPi * part));
  }
};

}  // namespace mge
