// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device_name.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/plugin/note.h"
#include "fmt/format.h"
#include "mge/plugin/names.hpp"

namespace mge {
namespace {

constexpr std::string_view kWellKnown[] = {"cpu",  "gpu",         "xpu",  "cuda",    "rocm",
                                           "host", "multithread", "null", "virtual", "cpu_pinned"};
constexpr int kMaxNumber = 65535;
constexpr int kMaxThreads = 1024;
constexpr size_t kMaxList = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses a number of digits without a sign. Returns nullopt above kMaxNumber.
std::optional<int> ParseNumber(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  int value = 0;
  for (char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value <= kMaxNumber ? std::optional<int>(value) : std::nullopt;
}

bool IsWellKnown(std::string_view cls) {
  return std::find(std::begin(kWellKnown), std::end(kWellKnown), cls) != std::end(kWellKnown);
}

// The error of a name: the problem and the fix.
struct Wrong {
  std::string what;
  std::string fix;
};

constexpr std::string_view kForms = "write a class and a number: cpu0, gpu1, cpux (any), xpux (the best)";

Wrong NotAName(std::string_view text) {
  std::string_view head = text.substr(0, text.find_first_of("0123456789:("));
  std::string_view rest = text.substr(head.size());
  std::string_view nearest = IsWellKnown(head) ? "" : Nearest(head, kWellKnown);
  if (!nearest.empty()) {
    std::string proposal = fmt::format("{}{}", nearest, rest);
    return {fmt::format("'{}' is not the name of a device.{}", text, DidYouMean(proposal)), std::string(kForms)};
  }
  return {fmt::format("'{}' is not the name of a device", text), std::string(kForms)};
}

// The parts of a name such as "gpu1", "gpux" or "gpu". ParseHead() returns nullopt if the text does not have that form.
struct NameHead {
  std::string_view cls;
  int number = kLowestUsable;
  bool numbered = false;
};
std::optional<NameHead> ParseHead(std::string_view text) {
  size_t digits = text.size();
  while (digits > 0 && IsDigit(text[digits - 1])) --digits;
  NameHead head{text.substr(0, digits)};
  if (digits < text.size()) {
    std::optional<int> number = ParseNumber(text.substr(digits));
    if (!number) return std::nullopt;
    head.number = *number;
    head.numbered = true;
  } else if (!IsWellKnown(text) && text.size() > 1 && text.back() == 'x') {
    head.cls.remove_suffix(1);
  }
  if (!IsClassName(head.cls)) return std::nullopt;
  return head;
}

std::optional<Wrong> ParseMultithread(std::string_view text, DeviceName& out) {
  constexpr std::string_view kFix = "write multithread4:0 (4 threads on device 0) or multithread:default:4";
  out.cls = kMultithread;
  std::string_view rest = text.substr(out.cls.size());
  std::optional<int> threads;
  if (constexpr std::string_view kDefault = ":default:"; rest.starts_with(kDefault)) {
    threads = ParseNumber(rest.substr(kDefault.size()));
    out.synchronous = true;
  } else {
    size_t colon = rest.find(':');
    threads = ParseNumber(rest.substr(0, colon));
    std::optional<int> device = colon == std::string_view::npos ? 0 : ParseNumber(rest.substr(colon + 1));
    if (!device) return Wrong{fmt::format("'{}' does not name a device after the colon", text), std::string(kFix)};
    out.number = *device;
  }
  if (!threads || *threads < 1 || *threads > kMaxThreads) {
    return Wrong{fmt::format("'{}' does not name a number of threads in 1..{}", text, kMaxThreads), std::string(kFix)};
  }
  out.threads = *threads;
  return std::nullopt;
}

std::optional<Wrong> Parse(std::string_view text, DeviceName& out) {
  if (text.empty()) return Wrong{"a name is empty", std::string(kForms)};
  if (text.starts_with(kMultithread)) return ParseMultithread(text, out);
  if (text == "cpu:default") {
    out.cls = "cpu";
    out.synchronous = true;
    return std::nullopt;
  }
  if (text.back() == ')') {
    size_t open = text.find('(');
    std::string_view cls = text.substr(0, open);
    std::optional<int> number;
    if (open != std::string_view::npos) number = ParseNumber(text.substr(open + 1, text.size() - open - 2));
    if (!number || !IsClassName(cls)) return NotAName(text);
    out.cls = cls;
    out.number = *number;
    out.context = true;
    return std::nullopt;
  }
  size_t colon = text.find(':');
  std::optional<NameHead> head = ParseHead(text.substr(0, colon));
  if (!head) return NotAName(text);
  out.cls = head->cls;
  out.number = head->number;
  if (out.cls == "cpu_pinned") return Wrong{"'cpu_pinned' is a context, not a device", "write cpu_pinned(0)"};
  if (colon != std::string_view::npos) {
    std::optional<int> stream = ParseNumber(text.substr(colon + 1));
    bool bare = text.substr(0, colon) == out.cls;
    if (bare && stream) {
      return Wrong{fmt::format("in '{}' the colon stands before a stream, and the device's number is missing", text),
                   fmt::format("write {}{}", out.cls, *stream)};
    }
    if (!stream) {
      return Wrong{fmt::format("'{}' does not name a stream after the colon", text),
                   fmt::format("write {}:0, or leave the colon out", text.substr(0, colon))};
    }
    out.stream = *stream;
  }
  return std::nullopt;
}

absl::Status Bad(std::string_view text, Wrong wrong, std::string_view where) {
  return Fail(errors::kBadDeviceName, fmt::format("'{}' does not name a device", EscapeControl(text.substr(0, 80))),
              {.what = EscapeControl(wrong.what), .where = std::string(where), .fix = EscapeControl(wrong.fix)});
}

}  // namespace

std::span<const std::string_view> WellKnownDeviceClasses() { return kWellKnown; }

std::string DeviceName::ToString() const {
  if (cls == kMultithread) {
    return synchronous ? fmt::format("multithread:default:{}", threads) : fmt::format("multithread{}:{}", threads, number);
  }
  if (context) return fmt::format("{}({})", cls, number);
  if (synchronous) return cls + ":default";
  std::string out = number == kLowestUsable ? cls + "x" : fmt::format("{}{}", cls, number);
  if (stream != kNoStream) out += fmt::format(":{}", stream);
  return out;
}

std::string DeviceSpec::ToString() const {
  std::string out;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    if (i > 0) out += ',';
    for (size_t k = 0; k < alternatives[i].size(); ++k) {
      if (k > 0) out += '+';
      out += alternatives[i][k].ToString();
    }
  }
  return out;
}

absl::StatusOr<DeviceName> ParseDeviceName(std::string_view text, std::string_view where) {
  DeviceName name;
  if (std::optional<Wrong> wrong = Parse(Trim(text), name)) return Bad(text, *std::move(wrong), where);
  name.text = Trim(text);
  return name;
}

absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text, std::string_view where) {
  DeviceSpec spec;
  spec.alternatives.emplace_back();
  size_t count = 0;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find_first_of(",+", begin), text.size());
    DeviceName name;
    if (++count > kMaxList) {
      return Bad(text, {fmt::format("the list has more than {} names", kMaxList), "name fewer devices"}, where);
    }
    if (std::optional<Wrong> wrong = Parse(Trim(text.substr(begin, end - begin)), name)) {
      return Bad(text, *std::move(wrong), where);
    }
    name.text = Trim(text.substr(begin, end - begin));
    spec.alternatives.back().push_back(std::move(name));
    if (end < text.size() && text[end] == ',') spec.alternatives.emplace_back();
    begin = end + 1;
  }
  return spec;
}

std::string_view ClassOf(const DeviceName& name) {
  return name.cls == "multithread" || name.cls == "cpu_pinned" ? "cpu" : std::string_view(name.cls);
}

}  // namespace mge
