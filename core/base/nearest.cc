// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest.h"

#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kLongest = 128;  // longer texts are not compared: the time is quadratic in the length

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <typename Names>
std::string_view NearestOf(std::string_view wrong, const Names& candidates) {
  std::string_view best;
  int limit = static_cast<int>(std::min(wrong.size(), kLongest) / 3);
  if (wrong.size() == 2) limit = 1;
  for (std::string_view candidate : candidates) {
    int distance = EditDistance(wrong, candidate, limit);
    if (distance <= limit) {
      best = candidate;
      limit = distance - 1;  // only a nearer candidate replaces this one
    }
    if (limit < 0) break;
  }
  return best;
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b, int limit) {
  const int far = limit + 1;
  if (limit < 0 || a.size() > kLongest || b.size() > kLongest) return far;
  if (std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())) > limit) return far;
  int rows[3][kLongest + 1];
  int *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    int least = now[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
      least = std::min(least, now[j]);
    }
    if (least > limit) return far;
    std::swap(before, last);
    std::swap(last, now);
  }
  return std::min(last[b.size()], far);
}

std::string_view Nearest(std::string_view wrong, std::span<const std::string_view> candidates) {
  return NearestOf(wrong, candidates);
}

std::string_view Nearest(std::string_view wrong, const std::vector<std::string>& candidates) {
  return NearestOf(wrong, candidates);
}

std::string DidYouMean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format(" Did you mean \"{}\"?", nearest);
}

std::string DidYouMeanOr(std::string_view nearest, std::string_view otherwise) {
  return nearest.empty() ? std::string(otherwise) : fmt::format("did you mean '{}'?", nearest);
}

}  // namespace mge
