// SPDX-License-Identifier: Apache-2.0
#include "core/base/byte_size.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "fmt/format.h"

namespace mge {
namespace {

// Returns the number of bytes in a lower-case unit: "", "b", "k", "kib", "kb" and so on. Returns 0 for any other text.
int64_t UnitOf(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const size_t power = std::string_view("kmgt").find(unit[0]);
  unit.remove_prefix(1);
  if (power == std::string_view::npos || !(unit.empty() || unit == "b" || unit == "ib")) return 0;
  int64_t bytes = 1;
  for (size_t i = 0; i <= power; ++i) bytes *= unit == "b" ? 1000 : 1024;
  return bytes;
}

}  // namespace

std::optional<int64_t> ParseByteSize(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const size_t end = std::min(text.find_first_not_of(".0123456789"), text.size());
  const std::string_view number = text.substr(0, end);
  std::string unit;
  for (char c : text.substr(end)) {
    if (c != ' ' || !unit.empty()) unit += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  const int64_t scale = UnitOf(unit);
  if (number.empty() || scale == 0) return std::nullopt;
  const char* last = number.data() + number.size();
  int64_t whole = 0;
  if (auto [stop, error] = std::from_chars(number.data(), last, whole); error == std::errc() && stop == last) {
    if (whole > INT64_MAX / scale) return std::nullopt;
    return whole * scale;
  }
  double real = 0;
  auto [stop, error] = std::from_chars(number.data(), last, real);
  if (error != std::errc() || stop != last || scale == 1) return std::nullopt;
  const double bytes = real * static_cast<double>(scale);
  if (!(bytes < 9.2e18)) return std::nullopt;
  return std::llround(bytes);
}

std::string HumanBytes(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace mge
