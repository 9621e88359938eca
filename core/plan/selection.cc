// SPDX-License-Identifier: Apache-2.0
#include "core/plan/selection.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/env/config_file.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kFormat = "mge.selection/1";
constexpr std::string_view kTable = "kernels.";

// A string of TOML.
std::string TomlString(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string Comment(std::string_view text) {
  std::string out(text);
  std::replace_if(out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FrozenSelection>> FrozenSelection::Read(const std::string& path) {
  constexpr char kFix[] = "write it anew: run the model once with select.strategy = profile and select.freeze = FILE";
  auto refuse = [&](std::string what) {
    return Fail(errors::kConfigFile, fmt::format("'{}' is no selection of kernels", path),
                {.what = std::move(what), .where = "select.frozen", .fix = kFix});
  };
  absl::StatusOr<std::vector<ConfigItem>> read = ReadConfigFile(path);
  if (!read.ok()) {
    ErrorParts parts = PartsOf(read.status());
    parts.fix = kFix;
    return Fail(errors::kConfigFile, fmt::format("the selection of kernels '{}' cannot be read", path), std::move(parts));
  }
  const std::vector<ConfigItem>& items = *read;
  auto selection = std::make_shared<FrozenSelection>();
  selection->path_ = path;
  int64_t count = -1;
  bool format = false;
  for (const ConfigItem& item : items) {
    if (item.key == "format") {
      const auto* text = std::get_if<std::string>(&item.value);
      format = text && *text == kFormat;
      if (!format) return refuse(fmt::format("{}: its format is not \"{}\"", item.place, kFormat));
    } else if (item.key == "count") {
      if (const auto* n = std::get_if<int64_t>(&item.value)) count = *n;
    } else if (const auto* id = std::get_if<std::string>(&item.value); id && item.key.starts_with(kTable)) {
      selection->kernels_[item.key.substr(kTable.size())] = *id;
    } else {
      return refuse(fmt::format("{}: '{}' has no place in it", item.place, item.key));
    }
  }
  if (!format) return refuse("it does not name its format");
  if (count != static_cast<int64_t>(selection->kernels_.size())) {
    return refuse(fmt::format("it holds {} kernels and says that there are {}", selection->kernels_.size(), count));
  }
  return selection;
}

std::string_view FrozenSelection::Find(const std::string& key) const {
  auto at = kernels_.find(key);
  return at == kernels_.end() ? std::string_view() : std::string_view(at->second);
}

SelectionRecorder::SelectionRecorder(std::string path, const FrozenSelection* before) : path_(std::move(path)) {
  if (!before) return;
  for (const auto& [key, id] : before->kernels()) entries_[key] = {id, "chosen by an earlier process"};
}

void SelectionRecorder::Note(const std::string& key, std::string id, std::string_view text, std::string_view why) {
  std::lock_guard lock(mutex_);
  Entry entry = {std::move(id), fmt::format("{}: {}", Comment(text), Comment(why))};
  Entry& mine = entries_[key];
  changed_ |= mine.id != entry.id;
  mine = std::move(entry);
}

void SelectionRecorder::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  changed_ |= entries_.erase(key) != 0;
}

absl::Status SelectionRecorder::Flush() {
  std::lock_guard lock(mutex_);
  if (!changed_) return absl::OkStatus();
  std::string text = fmt::format("# The kernels that were chosen, one for each problem. Used by select.frozen.\n"
                                 "format = \"{}\"\ncount = {}\n\n[kernels]\n", kFormat, entries_.size());
  for (const auto& [key, entry] : entries_) text += fmt::format("# {}\n{} = {}\n", entry.comment, key, TomlString(entry.id));
  MGE_RETURN_IF_ERROR(WriteFileAtomically(path_, AsBytes(text)));
  changed_ = false;
  return absl::OkStatus();
}

}  // namespace mge
