// SPDX-License-Identifier: Apache-2.0
#include "core/env/config_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 4  // together with kConfigLineLimit, limits the nesting of tables
#include "toml++/toml.h"

namespace mge {
namespace {

absl::Status Refuse(std::string title, std::string where, std::string what, std::string fix) {
  return Fail(errors::kConfigFile, std::move(title),
              {.what = std::move(what), .where = std::move(where), .fix = std::move(fix)});
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  auto file = OpenRegularFile(path);
  if (!file.ok()) {
    ErrorParts parts = PartsOf(file.status());
    return Fail(errors::kConfigFile, fmt::format("the configuration file {} cannot be opened", Quoted(path)),
                {.what = parts.what.empty() ? ErrorTitle(file.status()) : parts.what,
                 .where = path,
                 .fix = "name a readable file with --config or MGE_CONFIG"});
  }
  if (file->size > kConfigFileLimit) {
    return Refuse(fmt::format("the configuration file {} is too large", Quoted(path)), path,
                  fmt::format("{} bytes; at most {} are read", file->size, kConfigFileLimit),
                  "keep only settings in the configuration file");
  }
  std::string text(static_cast<size_t>(file->size), '\0');
  MGE_RETURN_IF_ERROR(ReadRange(file->fd.get(), 0, std::as_writable_bytes(std::span(text.data(), text.size())), path));
  // The limit on a line's length limits how deep its tables nest. toml++ frees nested tables recursively.
  int64_t line = 1;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    if (static_cast<int64_t>(end - begin) > kConfigLineLimit) {
      return Refuse("a line of the configuration file is too long", fmt::format("{}:{}", path, line),
                    fmt::format("{} bytes; at most {} are read", end - begin, kConfigLineLimit),
                    "break a long list into several lines");
    }
    begin = end + 1;
    ++line;
  }
  return text;
}

absl::StatusOr<ConfigValue> ConvertArray(const toml::array& array, const std::string& key, const std::string& place) {
  std::vector<std::string> entries;
  for (const toml::node& node : array) {
    const auto* text = node.as_string();
    if (!text) {
      return Refuse(fmt::format("{} has an array with elements that are not strings", key), place, "",
                    "write a list as [\"a\", \"b\"]");
    }
    entries.push_back(text->get());
  }
  return ConfigValue(std::move(entries));
}

absl::StatusOr<ConfigValue> Convert(const toml::node& node, const std::string& key, const std::string& place) {
  if (const auto* flag = node.as_boolean()) return ConfigValue(flag->get());
  if (const auto* whole = node.as_integer()) return ConfigValue(whole->get());
  if (const auto* real = node.as_floating_point()) return ConfigValue(real->get());
  if (const auto* text = node.as_string()) return ConfigValue(text->get());
  if (const auto* array = node.as_array()) return ConvertArray(*array, key, place);
  return Refuse(fmt::format("{} is a date or a time", key), place, "no setting has this type", "");
}

}  // namespace

absl::StatusOr<std::vector<ConfigItem>> ReadConfigFile(const std::string& path) {
  MGE_ASSIGN_OR_RETURN(std::string text, ReadText(path));
  toml::parse_result parsed = toml::parse(std::string_view(text));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Refuse("the configuration file is not valid TOML", fmt::format("{}:{}", path, error.source().begin.line),
                  std::string(error.description()), "write one `key = value` per line, and each key only once");
  }

  std::vector<std::pair<int64_t, ConfigItem>> found;
  std::vector<std::pair<std::string, const toml::table*>> open = {{"", &parsed.table()}};
  while (!open.empty()) {
    auto [prefix, table] = std::move(open.back());
    open.pop_back();
    for (const auto& [name, node] : *table) {
      std::string key = prefix + std::string(name.str());
      const auto line = static_cast<int64_t>(node.source().begin.line);
      if (const toml::table* inner = node.as_table()) {
        open.emplace_back(key + ".", inner);
        continue;
      }
      std::string place = fmt::format("{}:{}", path, line);
      MGE_ASSIGN_OR_RETURN(ConfigValue value, Convert(node, Quoted(key), place));
      found.emplace_back(line, ConfigItem{std::move(key), std::move(value), std::move(place)});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  // In TOML, a quoted "a.b" and a.b are two keys; here they are the same one.
  std::vector<ConfigItem> items;
  std::set<std::string> keys;
  for (auto& [line, item] : found) {
    if (!keys.insert(item.key).second) {
      return Refuse(fmt::format("the key {} is set twice", Quoted(item.key)), item.place, "", "remove one of the lines");
    }
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace mge
