// SPDX-License-Identifier: Apache-2.0
// Setting<T>: how one setting is declared. The rows stand in settings_*.h; everything else about a
// setting is derived from its row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/env/setting_value.h"

namespace mge {

// When a setting may change. First-set: read once per runtime. Dynamic: read when a session or a
// plan is made, and part of the plan's key.
enum class Lifecycle : uint8_t { kFirstSet, kDynamic };

// Later: the name is known and its value is checked, but its effect is not built; setting it warns
// once, or fails in strict mode.
enum class SettingStatus : uint8_t { kBuilt, kLater };

enum class SettingType : uint8_t {
  kBool,
  kInt,
  kDouble,
  kBytes,
  kSeconds,
  kText,
  kPath,
  kChoice,
  kFlags,
  kTextList,
  kPathList,
  kMemoryLimits,
};

// One allowed value of a kChoice or kFlags setting. Names and spellings are compared without case.
struct Choice {
  int64_t value;
  std::string_view name;       // canonical
  std::string_view spellings;  // others that are accepted, separated by spaces

  template <typename E>
  constexpr Choice(E v, std::string_view n, std::string_view s = {})
      : value(static_cast<int64_t>(v)), name(n), spellings(s) {}
};

template <typename T>
struct Range {
  T min;
  T max;
};

// A number or a text, as a row holds its default and its limits.
struct SettingLiteral {
  int64_t whole = 0;
  double real = 0;
  std::string_view text = {};
};

// A setting without its C++ type: what parsing, printing and checking work on, for the core's rows
// and a backend's alike.
struct SettingRow {
  std::string_view key;
  SettingType type = SettingType::kText;
  SettingLiteral fallback = {};
  bool ranged = false;
  SettingLiteral min = {};
  SettingLiteral max = {};
  std::span<const Choice> choices = {};
  bool (*check)(std::string_view text) = nullptr;
  std::string_view allowed = {};
  std::string_view unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string_view doc = {};
  std::string_view aliases = {};
  SettingStatus status = SettingStatus::kBuilt;
  std::string_view variable = {};
  std::string_view instead = {};
};

namespace setting_internal {

template <SettingType kT, typename Constant, typename Result, typename Stored>
struct TraitsBase {
  static constexpr SettingType kType = kT;
  using ConstantType = Constant;  // of the default and the range in the row
  using ResultType = Result;      // of Snapshot::Get
  using StoredType = Stored;      // in SettingValue
};

template <typename T>
struct Traits;
template <>
struct Traits<bool> : TraitsBase<SettingType::kBool, bool, bool, bool> {
  static constexpr SettingLiteral Erase(bool v) { return {.whole = v}; }
};
template <>
struct Traits<int64_t> : TraitsBase<SettingType::kInt, int64_t, int64_t, int64_t> {
  static constexpr SettingLiteral Erase(int64_t v) { return {.whole = v}; }
};
template <>
struct Traits<double> : TraitsBase<SettingType::kDouble, double, double, double> {
  static constexpr SettingLiteral Erase(double v) { return {.real = v}; }
};
template <>
struct Traits<ByteCount> : TraitsBase<SettingType::kBytes, ByteCount, ByteCount, int64_t> {
  static constexpr SettingLiteral Erase(ByteCount v) { return {.whole = v.count}; }
};
template <>
struct Traits<Seconds> : TraitsBase<SettingType::kSeconds, Seconds, Seconds, double> {
  static constexpr SettingLiteral Erase(Seconds v) { return {.real = v.count()}; }
};
template <SettingType kT, typename Stored>
struct TextTraits : TraitsBase<kT, std::string_view, const Stored&, Stored> {
  static constexpr SettingLiteral Erase(std::string_view v) { return {.text = v}; }
};
template <>
struct Traits<Text> : TextTraits<SettingType::kText, std::string> {};
template <>
struct Traits<Path> : TextTraits<SettingType::kPath, std::string> {};
template <>
struct Traits<TextList> : TextTraits<SettingType::kTextList, std::vector<std::string>> {};
template <>
struct Traits<PathList> : TextTraits<SettingType::kPathList, std::vector<std::string>> {};
template <>
struct Traits<MemoryLimits> : TextTraits<SettingType::kMemoryLimits, MemoryLimits> {};
template <typename E>
requires std::is_enum_v<E>
struct Traits<E> : TraitsBase<SettingType::kChoice, E, E, int64_t> {
  static constexpr SettingLiteral Erase(E v) { return {.whole = static_cast<int64_t>(v)}; }
};
template <typename E>
struct Traits<Flags<E>> : TraitsBase<SettingType::kFlags, Flags<E>, Flags<E>, int64_t> {
  static constexpr SettingLiteral Erase(Flags<E> v) { return {.whole = v.bits}; }
};

}  // namespace setting_internal

// One setting. `engine.type` is the variable MGE_ENGINE_TYPE unless `variable` names another.
template <typename T>
struct Setting {
  using Type = T;
  using Traits = setting_internal::Traits<T>;
  using Constant = typename Traits::ConstantType;

  std::string_view key = {};
  Constant fallback = {};
  std::optional<Range<Constant>> range = {};  // both ends are allowed; numbers only
  std::span<const Choice> choices = {};       // enums and flags only
  // A further rule on text, and on every entry of a list; then `allowed` says in words what it allows.
  bool (*check)(std::string_view text) = nullptr;
  std::string_view allowed = {};
  std::string_view unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string_view doc = {};      // one sentence
  std::string_view aliases = {};  // other names, separated by spaces
  SettingStatus status = SettingStatus::kBuilt;
  std::string_view variable = {};
  std::string_view instead = {};  // the function that changes a first-set setting later

  constexpr SettingRow Row() const {
    return {.key = key,
            .type = Traits::kType,
            .fallback = Traits::Erase(fallback),
            .ranged = range.has_value(),
            .min = range ? Traits::Erase(range->min) : SettingLiteral{},
            .max = range ? Traits::Erase(range->max) : SettingLiteral{},
            .choices = choices,
            .check = check,
            .allowed = allowed,
            .unit = unit,
            .lifecycle = lifecycle,
            .doc = doc,
            .aliases = aliases,
            .status = status,
            .variable = variable,
            .instead = instead};
  }
};

template <typename... T>
constexpr std::array<SettingRow, sizeof...(T)> SettingRows(const Setting<T>&... settings) {
  return {settings.Row()...};
}

template <size_t... kSizes>
constexpr auto JoinSettingRows(const std::array<SettingRow, kSizes>&... parts) {
  std::array<SettingRow, (kSizes + ...)> all;
  size_t at = 0;
  auto append = [&](const auto& part) {
    for (const SettingRow& row : part) all[at++] = row;
  };
  (append(parts), ...);
  return all;
}

}  // namespace mge
