// SPDX-License-Identifier: Apache-2.0
// Setting<T>: the declaration of a setting. The declarations (rows) are in settings_*.h; everything else about a
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

// The time at which a setting may change. First-set: it is read once per runtime. Dynamic: it is read when a session or a
// plan is created, and is part of the plan's key.
enum class Lifecycle : uint8_t { kFirstSet, kDynamic };

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

// An allowed value of a kChoice or kFlags setting. Names and spellings are compared without case.
struct Choice {
  int64_t value;
  std::string_view name;       // the canonical name
  std::string_view spellings;  // other accepted names, separated by spaces

  template <typename E>
  constexpr Choice(E v, std::string_view n, std::string_view s = {})
      : value(static_cast<int64_t>(v)), name(n), spellings(s) {}
};

template <typename T>
struct Range {
  T min;
  T max;
};

// A text for a value that is not an amount, such as "unlimited". The value lies outside of the row's range, so that no number
// in a text has its meaning.
template <typename T>
struct ValueWord {
  std::string_view text = {};
  T value = {};
};

// A number or a text: a default or a limit in a row.
struct SettingLiteral {
  int64_t whole = 0;
  double real = 0;
  std::string_view text = {};
};

// A setting without its C++ type. Parsing, printing and checking use this form, both for the core's rows and for those of
// backends. The members are described at Setting.
struct SettingRow {
  std::string_view key;
  SettingType type = SettingType::kText;
  SettingLiteral default_value = {};
  bool ranged = false;
  SettingLiteral min = {};
  SettingLiteral max = {};
  std::string_view word = {};
  SettingLiteral word_value = {};
  std::span<const Choice> choices = {};
  bool (*check)(std::string_view text) = nullptr;
  std::string_view allowed = {};
  std::string_view unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string_view doc = {};
  std::string_view aliases = {};
  std::string_view instead = {};
  std::string_view sets = {};
  std::string_view unset = {};
  bool one_source = false;
  bool unstable = false;
};

namespace setting_internal {

template <SettingType kT, typename Constant, typename Result, typename Stored>
struct TraitsBase {
  static constexpr SettingType kType = kT;
  using ConstantType = Constant;  // type of the default and the range in the row
  using ResultType = Result;      // type that Snapshot::Get returns
  using StoredType = Stored;      // alternative of SettingValue
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

// The declaration of a setting. The variable of the key `engine.type` is MGE_ENGINE_TYPE.
template <typename T>
struct Setting {
  using Type = T;
  using Traits = setting_internal::Traits<T>;
  using Constant = typename Traits::ConstantType;

  std::string_view key = {};
  Constant default_value = {};
  std::optional<Range<Constant>> range = {};  // both ends are allowed; for numbers only
  ValueWord<Constant> word = {};              // for numbers with a range only
  std::span<const Choice> choices = {};       // for enums and flags only
  // An additional check of a text, or of each entry of a list. `allowed` then describes the allowed texts.
  bool (*check)(std::string_view text) = nullptr;
  std::string_view allowed = {};
  std::string_view unit = {};
  Lifecycle lifecycle = Lifecycle::kFirstSet;
  std::string_view doc = {};      // one or two sentences, shown by `mge env` and in the generated pages
  std::string_view aliases = {};  // other names, separated by spaces
  std::string_view instead = {};  // the function that can change a first-set setting after MarkRead
  // The key of a backend's setting of the same type, which takes this setting's value. From one source, the value for the
  // backend's own name wins.
  std::string_view sets = {};
  // Text for lists in place of the default, if something else holds where no source sets the value. Lists show the value of
  // the backend's setting for a row with `sets` and without this text.
  std::string_view unset = {};
  // A variable and an option (of the command line, a call or a session) with different values are an error. Otherwise the
  // option wins.
  bool one_source = false;
  bool unstable = false;  // a tuning number of an algorithm: a later version may change or remove it

  constexpr SettingRow Row() const {
    return {.key = key,
            .type = Traits::kType,
            .default_value = Traits::Erase(default_value),
            .ranged = range.has_value(),
            .min = range ? Traits::Erase(range->min) : SettingLiteral{},
            .max = range ? Traits::Erase(range->max) : SettingLiteral{},
            .word = word.text,
            .word_value = word.text.empty() ? SettingLiteral{} : Traits::Erase(word.value),
            .choices = choices,
            .check = check,
            .allowed = allowed,
            .unit = unit,
            .lifecycle = lifecycle,
            .doc = doc,
            .aliases = aliases,
            .instead = instead,
            .sets = sets,
            .unset = unset,
            .one_source = one_source,
            .unstable = unstable};
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
