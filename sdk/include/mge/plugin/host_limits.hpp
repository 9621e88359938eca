// SPDX-License-Identifier: Apache-2.0
// Memory and processors available to this process, within its machine and its container (control groups version 1 and 2).
// The limit of a control group also binds the groups inside it, so the least limit of the process's group and its parents
// applies. `root` is put in front of /proc and /sys, for tests. [any]
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// An amount of memory, in bytes.
struct MemoryAmount {
  uint64_t free_bytes = 0;   // available without swapping
  uint64_t total_bytes = 0;  // 0: unknown
};

namespace internal {

// Returns the contents of a file; empty if it cannot be read.
inline std::string TextOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof(piece)), file.gcount() > 0) text.append(piece, static_cast<size_t>(file.gcount()));
  return text;
}

// Calls visit(line) for each line.
template <typename Visit>
void ForEachLine(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    visit(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// Returns the number after `key` in the first line that begins with it. Returns nothing for "max", "-1", or without such a
// line.
inline std::optional<uint64_t> NumberAfter(std::string_view key, std::string_view text) {
  std::optional<uint64_t> number;
  bool found = false;
  ForEachLine(text, [&](std::string_view line) {
    if (found || !line.starts_with(key)) return;
    found = true;
    line.remove_prefix(std::min(line.find_first_not_of(' ', key.size()), line.size()));
    uint64_t value = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), value).ec == std::errc()) number = value;
  });
  return number;
}

// Calls visit(folder, unified) for the process's group with this controller and each parent group; `unified`: version 2.
template <typename Visit>
void ForEachControlGroup(const std::string& root, const std::string& controller, Visit&& visit) {
  const std::string text = TextOfFile(root + "/proc/self/cgroup");
  ForEachLine(text, [&](std::string_view line) {  // "4:cpu,cpuacct:/a/b"; in version 2 "0::/a/b"
    size_t first = line.find(':'), second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) return;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) return;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/" + controller);
    std::string group(line.substr(second + 1));
    if (group == "/") group.clear();
    for (;; group.resize(group.rfind('/'))) {
      visit(mount + group, unified);
      if (group.find('/') == std::string::npos) return;
    }
  });
}

}  // namespace internal

inline MemoryAmount HostMemoryAmount(const std::string& root = {}) {
  using internal::NumberAfter;
  using internal::TextOfFile;
  std::string machine = TextOfFile(root + "/proc/meminfo");
  MemoryAmount amount = {NumberAfter("MemAvailable:", machine).value_or(0) * 1024,
                         NumberAfter("MemTotal:", machine).value_or(0) * 1024};
  internal::ForEachControlGroup(root, "memory", [&](const std::string& group, bool unified) {
    auto limit = NumberAfter("", TextOfFile(group + (unified ? "/memory.max" : "/memory.limit_in_bytes")));
    if (!limit) return;
    auto used = NumberAfter("", TextOfFile(group + (unified ? "/memory.current" : "/memory.usage_in_bytes"))).value_or(0);
    auto cache =
        NumberAfter(unified ? "inactive_file " : "total_inactive_file ", TextOfFile(group + "/memory.stat")).value_or(0);
    used -= std::min(used, cache);  // page cache, which the system frees before an allocation fails
    amount.total_bytes = std::min(amount.total_bytes, *limit);
    amount.free_bytes = std::min(amount.free_bytes, *limit - std::min(*limit, used));
  });
  return amount;
}

// Returns the number of processors that the groups allow, possibly a fraction; infinity without a limit.
inline double HostProcessorLimit(const std::string& root = {}) {
  using internal::NumberAfter;
  using internal::TextOfFile;
  double least = std::numeric_limits<double>::infinity();
  internal::ForEachControlGroup(root, "cpu", [&](const std::string& group, bool unified) {
    std::optional<uint64_t> quota, period;
    if (unified) {  // "50000 100000", "max 100000"
      std::string text = TextOfFile(group + "/cpu.max");
      quota = NumberAfter("", text);
      period = NumberAfter("", text.substr(std::min(text.find(' '), text.size())));
    } else {
      quota = NumberAfter("", TextOfFile(group + "/cpu.cfs_quota_us"));
      period = NumberAfter("", TextOfFile(group + "/cpu.cfs_period_us"));
    }
    if (quota && period && *period > 0) least = std::min(least, static_cast<double>(*quota) / static_cast<double>(*period));
  });
  return least;
}

}  // namespace MGE_HIDDEN
