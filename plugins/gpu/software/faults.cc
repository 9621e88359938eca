// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/faults.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace mge::software {
namespace {

constexpr std::string_view kOperationNames[kOperations] = {"allocation", "copy", "kernel", "any"};
constexpr std::string_view kForm = "[DEVICE:]OPERATION@N[+]=EFFECT";

std::string_view Trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::microseconds> Time(std::string_view text) {
  double unit = 0;
  for (auto [name, us] : {std::pair<std::string_view, double>{"us", 1}, {"ms", 1e3}, {"s", 1e6}}) {
    if (!text.ends_with(name)) continue;
    text.remove_suffix(name.size());
    unit = us;
    break;
  }
  std::optional<double> value = Number<double>(text);
  if (unit == 0 || !value || !(*value >= 0) || *value * unit > 86400e6) return std::nullopt;  // at most one day
  return std::chrono::microseconds(std::llround(*value * unit));
}

Result Bad(std::string_view rule, std::string why) {
  return {MGE_INVALID_ARGUMENT, "the rule '" + std::string(rule) + "' " + why};
}

Result ParseRule(std::string_view text, FaultRule* rule) {
  rule->text = text;
  std::string_view rest = text;
  size_t equals = rest.find('='), at = rest.find('@');
  if (equals == rest.npos || at == rest.npos || at > equals) return Bad(text, "is not of the form " + std::string(kForm));
  std::string_view what = Trim(rest.substr(0, at)), when = Trim(rest.substr(at + 1, equals - at - 1)),
                   effect = Trim(rest.substr(equals + 1));
  if (size_t colon = what.find(':'); colon != what.npos) {
    std::optional<int> device = Number<int>(Trim(what.substr(0, colon)));
    if (!device || *device < 0) return Bad(text, "has no device number before ':'");
    rule->device = *device;
    what = Trim(what.substr(colon + 1));
  }
  int operation = 0;
  while (operation < kOperations && what != kOperationNames[operation]) ++operation;
  if (operation == kOperations) {
    return Bad(text, "has the operation '" + std::string(what) + "'; allowed: allocation, copy, kernel, any");
  }
  rule->operation = static_cast<Operation>(operation);

  bool onwards = when.ends_with('+');
  if (onwards) when.remove_suffix(1);
  std::optional<uint64_t> n = Number<uint64_t>(when);
  if (!n || *n == 0) {
    return Bad(text, "has the count '" + std::string(when) + "'; N must be a number >= 1, '+' includes all later ones");
  }
  rule->from = *n;
  rule->to = onwards ? UINT64_MAX : *n;

  if (effect == "fail")
    rule->effect = Effect::kFail;
  else if (effect == "lost")
    rule->effect = Effect::kLost;
  else if (effect == "hang")
    rule->effect = Effect::kHang;
  else if (effect.starts_with("slow(") && effect.ends_with(')')) {
    rule->effect = Effect::kSlow;
    std::string_view time = Trim(effect.substr(5, effect.size() - 6));
    auto delay = Time(time);
    if (!delay) return Bad(text, "has the time '" + std::string(time) + "'; write 20us, 50ms or 1.5s, at most a day");
    rule->delay = *delay;
  } else {
    return Bad(text, "has the effect '" + std::string(effect) + "'; allowed: fail, slow(TIME), hang, lost");
  }
  if (rule->operation == Operation::kAllocation && rule->effect == Effect::kHang) {
    return Bad(text, "makes an allocation hang, which is not supported; allowed: fail, slow(TIME), lost");
  }
  return {};
}

}  // namespace

Result ParseFaults(std::string_view text, std::vector<FaultRule>* out) {
  out->clear();
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(",;"), text.size());
    if (std::string_view part = Trim(text.substr(0, end)); !part.empty()) {
      if (Result r = ParseRule(part, &out->emplace_back()); !r.ok()) return r;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

Faults::Faults(const std::vector<FaultRule>& rules, int device) {
  for (const FaultRule& rule : rules) {
    if (rule.device < 0 || rule.device == device) rules_.push_back(rule);
  }
}

const FaultRule* Faults::Next(Operation operation) {
  if (rules_.empty()) return nullptr;
  auto count = [&](Operation o) { return ++counts_[static_cast<size_t>(o)]; };
  uint64_t own = count(operation), any = operation == Operation::kAllocation ? 0 : count(Operation::kAny);
  for (const FaultRule& rule : rules_) {
    uint64_t n = rule.operation == operation ? own : rule.operation == Operation::kAny ? any : 0;
    if (n >= rule.from && n <= rule.to && n) return &rule;
  }
  return nullptr;
}

}  // namespace mge::software
