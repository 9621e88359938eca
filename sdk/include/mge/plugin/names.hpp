// SPDX-License-Identifier: Apache-2.0
// Rules for the names of backends and device classes. The host refuses other names, and MGE_BACKEND does not compile with
// them.
#pragma once

#include <string_view>

#include "mge/plugin.h"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Returns why a backend cannot have this name; empty if it can.
constexpr std::string_view WhyNoBackendName(std::string_view name) {
  if (name.empty()) return "a backend needs a name";
  if (name.size() >= sizeof(mge_note::name)) return "the name of a backend has at most 31 characters";
  if (name[0] < 'a' || name[0] > 'z') return "the name of a backend begins with a-z";
  for (char c : name) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_') return "the name of a backend is of a-z, 0-9 and _";
  }
  return {};
}

// Limits from the syntax of device names.
inline constexpr size_t kShortestClass = 2;
// prefix of the host's device names that contain a number of threads
inline constexpr std::string_view kMultithread = "multithread";

// Returns why a device class cannot have this name; empty if it can.
constexpr std::string_view WhyNoClassName(std::string_view name) {
  if (name.empty()) return "a device class needs a name";
  if (name.size() < kShortestClass) return "a device class has at least 2 letters";
  if (name[0] < 'a' || name[0] > 'z') return "a device class begins with a-z";
  for (char c : name) {
    if ((c < 'a' || c > 'z') && c != '_') return "a device class is of a-z and _: digits are the number of a device";
  }
  if (name.back() == 'x') return "a device class does not end in x, which stands for any number in names of devices";
  if (name.starts_with(kMultithread)) return "a device class does not begin with multithread, as the host's own names do";
  for (std::string_view own : {"host", "xpu", "cpu_pinned", "cpu_shared"}) {
    if (name == own) return "the host uses this word for devices of its own";
  }
  return {};
}

// Returns why a note cannot contain this list of classes, separated by commas; empty if it can. "gpu" needs a second class.
constexpr std::string_view WhyNoClassList(std::string_view list) {
  if (list.size() >= sizeof(mge_note::classes)) return "the device classes have at most 63 characters together";
  if (list == "gpu") return "gpu stands beside a class of the backend's own, never alone";
  for (;;) {
    size_t end = list.find(',');
    if (std::string_view why = WhyNoClassName(list.substr(0, end)); !why.empty()) return why;
    if (end == std::string_view::npos) return {};
    list.remove_prefix(end + 1);
  }
}

}  // namespace MGE_HIDDEN
