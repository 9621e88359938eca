// SPDX-License-Identifier: Apache-2.0
// Checks of a table of settings, evaluated at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/env/setting.h"

namespace mge {

// The name of a key's variable, such as MGE_ENGINE_TYPE for engine.type, in a fixed array.
struct VariableName {
  static constexpr size_t kLongest = 96;
  char text[kLongest] = {};
  size_t size = 0;

  constexpr explicit VariableName(std::string_view key) {
    Append("MGE_");
    Append(key);
  }
  constexpr std::string_view view() const { return {text, size}; }

 private:
  constexpr void Append(std::string_view part) {
    for (char c : part) {
      if (size == kLongest) throw "the name of a variable is too long";
      text[size++] = c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
};

namespace setting_table_internal {

// Removes the next word from the front of `text` and returns it.
constexpr std::string_view NextWord(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

constexpr bool IsKey(std::string_view key) {
  if (key.empty() || key.front() < 'a' || key.front() > 'z' || key.back() == '.') return false;
  for (size_t i = 0; i < key.size(); ++i) {
    char c = key[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!word && !(c == '.' && key[i - 1] != '.')) return false;
  }
  return true;
}

constexpr bool IsSentence(std::string_view doc) {
  return doc.size() > 8 && doc.front() >= 'A' && doc.front() <= 'Z' && doc.ends_with('.');
}

constexpr bool IsNumber(SettingType type) {
  return type == SettingType::kInt || type == SettingType::kBytes || type == SettingType::kDouble ||
         type == SettingType::kSeconds;
}

constexpr bool InRange(const SettingRow& row, const SettingLiteral& value) {
  return (row.min.whole <= value.whole && value.whole <= row.max.whole) &&
         (row.min.real <= value.real && value.real <= row.max.real);
}

constexpr bool Equal(const SettingLiteral& a, const SettingLiteral& b) { return a.whole == b.whole && a.real == b.real; }

// Returns whether the word of a row, if it has one, is told apart from every number.
constexpr bool WordFits(const SettingRow& row) {
  return row.word.empty() || (IsNumber(row.type) && row.ranged && !InRange(row, row.word_value));
}

// Returns whether the key tells the unit by its end, so that one ending has one meaning: the unit, or `_count` for a number
// of things.
constexpr bool UnitFits(const SettingRow& row) {
  if (row.type == SettingType::kMemoryLimits) return true;  // texts such as cpu0=1GiB
  const std::string_view unit = row.type == SettingType::kBytes     ? "bytes"
                                : row.type == SettingType::kSeconds ? "seconds"
                                                                    : row.unit;
  if (unit == "MiB") return row.key.ends_with("_mib");
  if (unit == "bytes" || unit == "seconds" || unit == "threads") return row.key.ends_with(unit);
  return unit.empty() || row.key.ends_with(unit) || row.key.ends_with("_count");
}

constexpr bool DefaultFits(const SettingRow& row) {
  switch (row.type) {
    case SettingType::kInt:
    case SettingType::kBytes:
    case SettingType::kDouble:
    case SettingType::kSeconds:
      return !row.ranged || InRange(row, row.default_value) ||
             (!row.word.empty() && Equal(row.default_value, row.word_value));
    case SettingType::kChoice:
      for (const Choice& choice : row.choices) {
        if (choice.value == row.default_value.whole) return !row.ranged;
      }
      return false;
    case SettingType::kFlags: {
      int64_t all = 0;
      for (const Choice& choice : row.choices) {
        if (choice.name.find('_') != choice.name.npos) return false;  // `_` joins flags
        all |= choice.value;
      }
      return row.default_value.whole != 0 && (row.default_value.whole & ~all) == 0 && !row.ranged;
    }
    default: return !row.ranged;
  }
}

}  // namespace setting_table_internal

// Returns whether a row is valid: its key has only small letters, digits, `_` and dots; its doc is a sentence; its
// default is in its range or its word; only enums and flags have choices.
constexpr bool ValidSetting(const SettingRow& row) {
  using namespace setting_table_internal;
  bool enumerated = row.type == SettingType::kChoice || row.type == SettingType::kFlags;
  return IsKey(row.key) && IsSentence(row.doc) && DefaultFits(row) && WordFits(row) && enumerated == !row.choices.empty() &&
         (row.instead.empty() || row.lifecycle == Lifecycle::kFirstSet);
}

// Returns whether every row is valid, its key tells its unit, and no two rows share a key, variable or alias.
template <size_t kSize>
constexpr bool ValidSettings(const std::array<SettingRow, kSize>& rows) {
  std::vector<VariableName> variables;  // complete before views into it are taken
  for (const SettingRow& row : rows) {
    if (!ValidSetting(row) || !setting_table_internal::UnitFits(row)) return false;
    variables.emplace_back(row.key);
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kSize; ++i) {
    names.push_back(rows[i].key);
    names.push_back(variables[i].view());
    std::string_view rest = rows[i].aliases;
    for (auto alias = setting_table_internal::NextWord(rest); !alias.empty();
         alias = setting_table_internal::NextWord(rest)) {
      names.push_back(alias);
    }
  }
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

}  // namespace mge
