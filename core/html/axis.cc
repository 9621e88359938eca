// SPDX-License-Identifier: Apache-2.0
#include "core/html/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "fmt/format.h"

namespace mge::html {
namespace {

// Returns 1, 2 or 5 times a power of ten that is at least `step`.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

double StepOf(const Axis& axis, int count) {
  const double step = (axis.high - axis.low) / std::max(count, 1);
  switch (axis.unit) {
    case Unit::kBytes: return std::max(1.0, std::exp2(std::ceil(std::log2(step))));
    case Unit::kCount: return std::max(1.0, RoundStep(step));
    case Unit::kNumber:
    case Unit::kMicroseconds: return RoundStep(step);
  }
  return step;
}

template <size_t kCount>
std::string Scaled(double value, double base, const std::array<const char*, kCount>& units, double from) {
  size_t unit = 0;
  while (std::abs(value) >= from && unit + 1 < kCount) {
    value /= base;
    from = base;
    ++unit;
  }
  return fmt::format("{:.4g}{}", value, units[unit]);
}

std::string TickText(const Axis& axis, double value) {
  switch (axis.unit) {
    case Unit::kBytes: return Scaled(value, 1024, std::array{" B", " KiB", " MiB", " GiB", " TiB"}, 1024);
    case Unit::kMicroseconds: return value == 0 ? "0" : Scaled(value, 1000, std::array{" us", " ms"}, 1000);
    case Unit::kNumber:
    case Unit::kCount: return Scaled(value, 1000, std::array{"", " k", " M", " G", " T"}, 1e4);
  }
  return {};
}

std::vector<Tick> LogarithmicTicks(const Axis& axis, int count) {
  const double decades = std::log10(axis.high / axis.low);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / std::max(count, 1))));
  std::vector<double> factors = {1};
  if (decades < count / 3.0) factors = {1, 2, 5};
  std::vector<Tick> out;
  for (int power = static_cast<int>(std::floor(std::log10(axis.low))); std::pow(10, power) <= axis.high; ++power) {
    if (power % every != 0) continue;
    for (double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (value >= axis.low && value <= axis.high) out.push_back({value, TickText(axis, value)});
    }
  }
  return out;
}

}  // namespace

Axis AxisOf(std::string title, const std::vector<double>& values, Unit unit, bool from_zero) {
  double low = INFINITY, high = -INFINITY;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) low = 0, high = 1;
  Axis axis = {.title = std::move(title), .low = low, .high = high, .unit = unit};
  if (!from_zero && low > 0 && high > 100 * low) {
    axis.logarithmic = true;
    axis.low = low / 1.2;
    axis.high = high * 1.2;
    return axis;
  }
  if (from_zero) axis.low = std::min(low, 0.0);
  const double space = (axis.high - axis.low) * 0.05;
  axis.high += space;
  if (!from_zero) axis.low -= space;
  if (const double least = std::max(1e-30, std::abs(axis.high) * 1e-6); axis.high - axis.low < least) {
    const double half = axis.high == 0 ? 0.5 : std::abs(axis.high) / 2;
    axis.low -= from_zero && axis.low == 0 ? 0 : half;
    axis.high += half;
  }
  return axis;
}

std::vector<Tick> TicksOf(const Axis& axis, int count) {
  if (axis.logarithmic) return LogarithmicTicks(axis, count);
  const double step = StepOf(axis, count);
  std::vector<Tick> out;
  const auto first = static_cast<int64_t>(std::ceil(axis.low / step - 1e-9));
  for (int64_t i = first; static_cast<double>(i) * step <= axis.high + step * 1e-9 && out.size() < 100; ++i) {
    out.push_back({static_cast<double>(i) * step, TickText(axis, static_cast<double>(i) * step)});
  }
  return out;
}

double PlaceOf(const Axis& axis, double value) {
  const double place = axis.logarithmic ? std::log(std::max(value, axis.low) / axis.low) / std::log(axis.high / axis.low)
                                        : (value - axis.low) / (axis.high - axis.low);
  return std::clamp(place, 0.0, 1.0);
}

}  // namespace mge::html
