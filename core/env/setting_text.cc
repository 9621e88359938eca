// SPDX-License-Identifier: Apache-2.0
#include "core/env/setting_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/byte_size.h"
#include "core/base/lower_case.h"
#include "core/env/setting_checks.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status Bad(std::string message) { return absl::InvalidArgumentError(message); }

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Splits a text at any of the separators. Removes white space around the parts and leaves out empty parts.
std::vector<std::string> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(separators), text.size());
    if (std::string_view part = Trim(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <typename T>
std::optional<T> Number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

// Splits a text such as "1.5GiB" into its number and its unit, converted to lower case.
std::pair<std::string_view, std::string> SplitUnit(std::string_view text) {
  size_t end = std::min(text.find_first_not_of("+-.0123456789"), text.size());
  // An exponent belongs to the number: 1e3 is 1000, not 1 with the unit "e3".
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E') &&
      text.substr(end + 1).find_first_not_of("+-0123456789") == text.npos) {
    end = text.size();
  }
  return {Trim(text.substr(0, end)), LowerCase(Trim(text.substr(end)))};
}

std::optional<double> ParseSeconds(std::string_view text) {
  auto [number, unit] = SplitUnit(text);
  auto value = Number<double>(number);
  if (!value) return std::nullopt;
  if (unit.empty() || unit == "s") return value;
  if (unit == "us") return *value * 1e-6;
  if (unit == "ms") return *value * 1e-3;
  if (unit == "min") return *value * 60;
  if (unit == "h") return *value * 3600;
  return std::nullopt;
}

std::string FormatSize(int64_t bytes) {
  constexpr std::string_view kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::string RangeText(bool from, std::string min, bool to, std::string max) {
  if (from && to) return fmt::format("{}..{}", min, max);
  return from ? fmt::format("{} or more", min) : fmt::format("{} or less", max);
}

const Choice* FindChoice(const SettingRow& row, std::string_view text) {
  std::string wanted = LowerCase(text);
  for (const Choice& choice : row.choices) {
    if (wanted == LowerCase(choice.name)) return &choice;
    for (std::string_view spelling : Words(choice.spellings)) {
      if (wanted == LowerCase(spelling)) return &choice;
    }
  }
  return nullptr;
}

bool IsWord(const SettingRow& row, std::string_view text) {
  return !row.word.empty() && LowerCase(text) == LowerCase(row.word);
}

// Returns the value that the word of the row stands for.
SettingValue WordValue(const SettingRow& row) {
  const bool real = row.type == SettingType::kDouble || row.type == SettingType::kSeconds;
  return real ? SettingValue(row.word_value.real) : SettingValue(row.word_value.whole);
}

bool HasWord(const SettingRow& row, const SettingValue& value) { return !row.word.empty() && value == WordValue(row); }

absl::StatusOr<SettingValue> CheckRange(const SettingRow& row, SettingValue value) {
  bool inside = true;
  if (const int64_t* whole = std::get_if<int64_t>(&value)) {
    if (row.type == SettingType::kBytes && *whole < 0) inside = false;
    if (row.ranged && (*whole < row.min.whole || *whole > row.max.whole)) inside = false;
  } else if (const double* real = std::get_if<double>(&value); real && row.ranged) {
    inside = *real >= row.min.real && *real <= row.max.real;
  }
  if (!inside) return Bad(fmt::format("is outside of {}", AllowedText(row)));
  return value;
}

absl::StatusOr<std::string> WithHome(std::string path, std::string_view home) {
  if (!path.starts_with('~')) return path;
  if (path.size() > 1 && path[1] != '/') {
    return Bad("names another user's folder with '~'; write that folder in full, or './~' for a file of that name");
  }
  if (!home.starts_with('/')) return Bad("begins with '~', but HOME is not set to an absolute path");
  return std::string(home) + path.substr(1);
}

// Checks a text, or an entry of a list, and expands `~` in a path.
absl::StatusOr<std::string> CheckText(const SettingRow& row, std::string text, std::string_view home) {
  if (text.find('\0') != text.npos) return Bad("contains a zero byte");
  if (row.type == SettingType::kPath || row.type == SettingType::kPathList) {
    MGE_ASSIGN_OR_RETURN(text, WithHome(std::move(text), home));
  }
  if (row.check && !text.empty() && !row.check(text)) return Bad(fmt::format("is not {}", row.allowed));
  return text;
}

absl::StatusOr<SettingValue> CheckList(const SettingRow& row, std::vector<std::string> entries, std::string_view home) {
  for (std::string& entry : entries) {
    if (entry.empty()) return Bad("has an empty entry");
    absl::StatusOr<std::string> checked = CheckText(row, entry, home);
    if (!checked.ok()) {
      const std::string allowed = AllowedText(row);
      std::string_view why = Std(checked.status().message());
      if (!allowed.empty() && why.find(allowed) != why.npos) why = "is not allowed";
      return Bad(
          fmt::format("has the entry {}, which {}{}{}", Quoted(entry), why, allowed.empty() ? "" : "; allowed: ", allowed));
    }
    entry = *std::move(checked);
  }
  return SettingValue(std::move(entries));
}

absl::StatusOr<SettingValue> ParseFlags(const SettingRow& row, std::string_view text) {
  int64_t bits = 0;
  for (const std::string& part : Split(text, "_|,+")) {
    const Choice* choice = FindChoice(row, part);
    if (!choice) return Bad(fmt::format("contains {}, which is not one of {}", Quoted(part), AllowedText(row)));
    bits |= choice->value;
  }
  if (bits == 0) return Bad(fmt::format("does not name any of {}", AllowedText(row)));
  return SettingValue(bits);
}

absl::StatusOr<SettingValue> ParseLimits(std::string_view text) {
  MemoryLimits limits;
  for (const std::string& part : Split(text, ",")) {
    size_t equals = part.find('=');
    std::string_view size = part;
    std::string device;
    if (equals != part.npos) {
      device = Trim(size.substr(0, equals));
      size = Trim(size.substr(equals + 1));
      if (device.empty()) return Bad(fmt::format("has the entry {} without a device", Quoted(part)));
    }
    auto bytes = ParseByteSize(size);
    if (!bytes || *bytes == 0) return Bad(fmt::format("has {} in place of a size of at least 1", Quoted(size)));
    if (device.empty()) {
      if (limits.all) return Bad("has two sizes for every device");
      limits.all = ByteCount{*bytes};
      continue;
    }
    for (const auto& [name, unused] : limits.by_device) {
      if (name == device) return Bad(fmt::format("has two sizes for {}", Quoted(device)));
    }
    limits.by_device.emplace_back(device, ByteCount{*bytes});
  }
  return SettingValue(std::move(limits));
}

absl::StatusOr<SettingValue> ParseBool(std::string_view text) {
  std::string word = LowerCase(text);
  if (word == "1" || word == "true" || word == "on" || word == "yes") return SettingValue(true);
  if (word == "0" || word == "false" || word == "off" || word == "no") return SettingValue(false);
  return Bad("is neither 1 nor 0");
}

}  // namespace

std::string_view TypeName(SettingType type) {
  switch (type) {
    case SettingType::kBool: return "bool";
    case SettingType::kInt: return "int";
    case SettingType::kDouble: return "float";
    case SettingType::kBytes: return "bytes";
    case SettingType::kSeconds: return "seconds";
    case SettingType::kText: return "text";
    case SettingType::kPath: return "path";
    case SettingType::kChoice: return "choice";
    case SettingType::kFlags: return "flags";
    case SettingType::kTextList: return "list";
    case SettingType::kPathList: return "paths";
    case SettingType::kMemoryLimits: return "limits";
  }
  return "";
}

std::string_view LifecycleName(Lifecycle lifecycle) { return lifecycle == Lifecycle::kFirstSet ? "first-set" : "dynamic"; }

absl::StatusOr<SettingValue> ParseSetting(const SettingRow& row, std::string_view text, std::string_view home) {
  text = Trim(text);
  if (IsWord(row, text)) return WordValue(row);
  switch (row.type) {
    case SettingType::kBool: return ParseBool(text);
    case SettingType::kInt: {
      auto value = Number<int64_t>(text);
      if (!value) return Bad("is not a whole number");
      return CheckRange(row, *value);
    }
    case SettingType::kDouble: {
      auto value = Number<double>(text);
      if (!value) return Bad("is not a number");
      return CheckRange(row, *value);
    }
    case SettingType::kBytes: {
      auto value = ParseByteSize(text);
      if (!value) return Bad("is not a size such as 4096, 512KiB, 2G (powers of 1024) or 64MB (of 1000)");
      return CheckRange(row, *value);
    }
    case SettingType::kSeconds: {
      auto value = ParseSeconds(text);
      if (!value) return Bad("is not a time such as 1.5, 500ms, 2s, 3min or 1h");
      return CheckRange(row, *value);
    }
    case SettingType::kText:
    case SettingType::kPath: {
      MGE_ASSIGN_OR_RETURN(std::string checked, CheckText(row, std::string(text), home));
      return SettingValue(std::move(checked));
    }
    case SettingType::kChoice: {
      const Choice* choice = FindChoice(row, text);
      if (!choice) return Bad(fmt::format("is not one of {}", AllowedText(row)));
      return SettingValue(choice->value);
    }
    case SettingType::kFlags: return ParseFlags(row, text);
    case SettingType::kTextList: return CheckList(row, Split(text, ","), home);
    case SettingType::kPathList: return CheckList(row, Split(text, ":"), home);
    case SettingType::kMemoryLimits: return ParseLimits(text);
  }
  return Bad("has no type");
}

absl::StatusOr<SettingValue> ReadConfigValue(const SettingRow& row, const ConfigValue& value, std::string_view home) {
  const SettingType type = row.type;
  if (const std::string* text = std::get_if<std::string>(&value)) {
    const bool plain = type == SettingType::kBool || type == SettingType::kInt || type == SettingType::kDouble;
    if (!plain || IsWord(row, Trim(*text))) {
      return ParseSetting(row, *text, home);
    }
  } else if (const bool* flag = std::get_if<bool>(&value)) {
    if (type == SettingType::kBool) return SettingValue(*flag);
  } else if (const int64_t* whole = std::get_if<int64_t>(&value)) {
    if (type == SettingType::kInt || type == SettingType::kBytes) return CheckRange(row, *whole);
    if (type == SettingType::kDouble || type == SettingType::kSeconds) {
      return CheckRange(row, static_cast<double>(*whole));
    }
    if (type == SettingType::kMemoryLimits || type == SettingType::kChoice)
      return ParseSetting(row, std::to_string(*whole), home);
  } else if (const double* real = std::get_if<double>(&value)) {
    if (type == SettingType::kDouble || type == SettingType::kSeconds) {
      if (!std::isfinite(*real)) return Bad("is not a number");
      return CheckRange(row, *real);
    }
  } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    if (type == SettingType::kTextList || type == SettingType::kPathList) return CheckList(row, *list, home);
  }
  constexpr std::string_view kHas[] = {"a truth value", "a whole number", "a number", "a string", "an array"};
  return absl::FailedPreconditionError(
      fmt::format("is {}, but the setting is of type {}", kHas[value.index()], TypeName(type)));
}

bool IsEmpty(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Trim(*text).empty();
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  return list && list->empty();
}

std::string ConfigText(const ConfigValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const double* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const std::string* text = std::get_if<std::string>(&value)) return Quoted(*text);
  std::string out;
  for (const std::string& entry : std::get<std::vector<std::string>>(value)) {
    out += (out.empty() ? "[" : ", ") + Quoted(entry);
    if (out.size() > 200) return out + ", ...]";
  }
  return out.empty() ? "[]" : out + "]";
}

std::string FormatSetting(const SettingRow& row, const SettingValue& value) {
  if (HasWord(row, value)) return std::string(row.word);
  switch (row.type) {
    case SettingType::kBool: return std::get<bool>(value) ? "true" : "false";
    case SettingType::kInt: return std::to_string(std::get<int64_t>(value));
    case SettingType::kDouble:
    case SettingType::kSeconds: return fmt::format("{}", std::get<double>(value));
    case SettingType::kBytes: return FormatSize(std::get<int64_t>(value));
    case SettingType::kText:
    case SettingType::kPath: return std::get<std::string>(value);
    case SettingType::kChoice:
      for (const Choice& choice : row.choices) {
        if (choice.value == std::get<int64_t>(value)) return std::string(choice.name);
      }
      return {};
    case SettingType::kFlags: {
      std::string out;
      for (const Choice& choice : row.choices) {
        if ((choice.value & std::get<int64_t>(value)) == 0) continue;
        if (!out.empty()) out += '_';
        out += choice.name;
      }
      return out;
    }
    case SettingType::kTextList:
    case SettingType::kPathList: {
      std::string out;
      for (const std::string& entry : std::get<std::vector<std::string>>(value)) {
        if (!out.empty()) out += row.type == SettingType::kTextList ? ',' : ':';
        out += entry;
      }
      return out;
    }
    case SettingType::kMemoryLimits: {
      const auto& limits = std::get<MemoryLimits>(value);
      std::string out = limits.all ? FormatSize(limits.all->count) : "";
      for (const auto& [device, size] : limits.by_device) {
        out += fmt::format("{}{}={}", out.empty() ? "" : ",", device, FormatSize(size.count));
      }
      return out;
    }
  }
  return {};
}

std::string PlainText(const SettingRow& row, const SettingValue& value) {
  if (row.type == SettingType::kBool) return std::get<bool>(value) ? "1" : "0";
  if (row.type == SettingType::kBytes && !HasWord(row, value)) return std::to_string(std::get<int64_t>(value));
  return FormatSetting(row, value);
}

SettingValue DefaultOf(const SettingRow& row, std::string_view home) {
  switch (row.type) {
    case SettingType::kBool: return row.default_value.whole != 0;
    case SettingType::kInt:
    case SettingType::kBytes:
    case SettingType::kChoice:
    case SettingType::kFlags: return row.default_value.whole;
    case SettingType::kDouble:
    case SettingType::kSeconds: return row.default_value.real;
    case SettingType::kText: return std::string(row.default_value.text);
    case SettingType::kPath:
      return WithHome(std::string(row.default_value.text), home).value_or(std::string(row.default_value.text));
    case SettingType::kTextList: return Split(row.default_value.text, ",");
    case SettingType::kPathList: return Split(row.default_value.text, ":");
    case SettingType::kMemoryLimits: return ParseLimits(row.default_value.text).value_or(SettingValue(MemoryLimits{}));
  }
  return {};
}

std::string AllowedText(const SettingRow& row) {
  if (!row.allowed.empty()) return std::string(row.allowed);
  if (row.type == SettingType::kBool) return "1, 0, true, false";
  if (!row.choices.empty()) {
    std::string out;
    for (const Choice& choice : row.choices) out += (out.empty() ? "" : ", ") + std::string(choice.name);
    return out;
  }
  if (!row.ranged) return {};
  const std::string word = row.word.empty() ? "" : fmt::format(", {}", row.word);
  switch (row.type) {
    case SettingType::kInt:
    case SettingType::kBytes: {
      auto text = [&](int64_t v) { return row.type == SettingType::kBytes ? FormatSize(v) : std::to_string(v); };
      return RangeText(row.min.whole != INT64_MIN, text(row.min.whole), row.max.whole != INT64_MAX, text(row.max.whole)) +
             word;
    }
    case SettingType::kDouble:
    case SettingType::kSeconds:
      return RangeText(std::isfinite(row.min.real), fmt::format("{}", row.min.real), std::isfinite(row.max.real),
                       fmt::format("{}", row.max.real)) +
             word;
    default: return {};
  }
}

std::string Quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string shown = EscapeControl(text.substr(0, kLongest));
  return fmt::format("\"{}{}\"", shown, text.size() > kLongest ? "..." : "");
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return words;
    size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::optional<ByteCount> MemoryLimits::For(std::string_view device) const {
  for (const auto& [name, size] : by_device) {
    if (name == device) return size;
  }
  return all;
}

bool IsAbsolutePath(std::string_view text) { return text.starts_with('/'); }

bool IsIdentifierWord(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return text.find_first_not_of(kAllowed) == text.npos;
}

bool IsReserve(std::string_view text) {
  if (text == "0" || text == "1") return true;
  return (text.starts_with("b:") || text.starts_with("B:")) && ParseByteSize(text.substr(2)).has_value();
}

bool IsOperatorTuning(std::string_view text) {
  if (text == "0" || text == "1") return true;
  constexpr std::string_view kTypes[] = {"float32", "float64", "float16", "int8", "uint8", "int32", "int64"};
  std::vector<std::string> parts = Split(text, ",");
  for (const std::string& part : parts) {
    if (std::find(std::begin(kTypes), std::end(kTypes), LowerCase(part)) == std::end(kTypes)) return false;
  }
  return !parts.empty();
}

bool IsUrl(std::string_view text) {
  for (std::string_view scheme : {"https://", "http://", "file:///"}) {
    if (text.starts_with(scheme) && text.size() > scheme.size()) return true;
  }
  return false;
}

}  // namespace mge
