// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/selection.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/env/config_file.h"
#include "core/plan/kernels/file_lock.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kFormat = "mge.selection/1";
constexpr std::string_view kTable = "kernels.";

// Returns the text as a TOML string with quotes.
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
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return out;
}

// Returns the ids, by key, in a file to which select.record adds. The map is empty if the file is missing or empty.
absl::StatusOr<std::map<std::string, std::string>> KernelsIn(const std::string& path) {
  std::error_code none;
  if (std::filesystem::file_size(path, none) == 0 || none) return std::map<std::string, std::string>();
  absl::StatusOr<std::shared_ptr<const SelectionFile>> before = SelectionFile::Read(path);
  if (before.ok()) return (*before)->kernels();
  return Fail(
      errors::kConfigFile, fmt::format("'{}' exists and is not a selection of kernels; it is not overwritten", path),
      {.what = PartsOf(before.status()).what, .where = "select.record", .fix = "name another file, or remove this one"});
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SelectionFile>> SelectionFile::Read(const std::string& path) {
  constexpr char kFix[] = "create it again: run the model once with select.strategy = profile and select.record = FILE";
  auto refuse = [&](std::string what) {
    return Fail(errors::kConfigFile, fmt::format("'{}' is not a selection of kernels", path),
                {.what = std::move(what), .where = "select.replay", .fix = kFix});
  };
  absl::StatusOr<std::vector<ConfigItem>> read = ReadConfigFile(path);
  if (!read.ok()) {
    ErrorParts parts = PartsOf(read.status());
    parts.fix = kFix;
    return Fail(errors::kConfigFile, fmt::format("the selection of kernels '{}' cannot be read", path), std::move(parts));
  }
  const std::vector<ConfigItem>& items = *read;
  auto selection = std::make_shared<SelectionFile>();
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
      return refuse(fmt::format("{}: '{}' is not an entry of a selection", item.place, item.key));
    }
  }
  if (!format) return refuse("it does not name its format");
  if (count != static_cast<int64_t>(selection->kernels_.size())) {
    return refuse(fmt::format("it holds {} kernels, but its count is {}", selection->kernels_.size(), count));
  }
  return selection;
}

std::string_view SelectionFile::Find(const std::string& key) const {
  auto at = kernels_.find(key);
  return at == kernels_.end() ? std::string_view() : std::string_view(at->second);
}

absl::StatusOr<std::shared_ptr<SelectionRecorder>> SelectionRecorder::Create(std::string path) {
  MGE_RETURN_IF_ERROR(KernelsIn(path).status());
  return std::shared_ptr<SelectionRecorder>(new SelectionRecorder(std::move(path)));
}

void SelectionRecorder::Note(const std::string& key, std::string id, std::string_view text, std::string_view why) {
  std::lock_guard lock(mutex_);
  Entry entry = {std::move(id), fmt::format("{}: {}", Comment(text), Comment(why))};
  std::optional<Entry>& mine = noted_[key];
  changed_ |= !mine || mine->id != entry.id;
  mine = std::move(entry);
}

void SelectionRecorder::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto [at, added] = noted_.try_emplace(key);
  changed_ |= added || at->second;
  at->second.reset();
}

absl::Status SelectionRecorder::Flush(const StopControl* stop) {
  {
    std::lock_guard lock(mutex_);
    if (!changed_) return absl::OkStatus();
  }
  // Locks the directory, since the file itself is replaced.
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  const std::string directory = parent.empty() ? std::string(1, '.') : parent.string();
  const Fd file_lock(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file_lock.valid()) {
    return Fail(errors::kFileWrite, fmt::format("cannot write '{}'", path_),
                {.what = fmt::format("'{}': {}", directory, ErrnoText(errno))});
  }
  MGE_RETURN_IF_ERROR(LockFile(file_lock, directory, stop));
  MGE_ASSIGN_OR_RETURN(auto kernels, KernelsIn(path_));
  std::lock_guard lock(mutex_);
  std::map<std::string, Entry> entries;
  for (auto& [key, id] : kernels) entries.emplace(key, Entry{std::move(id), "chosen by another process, or before"});
  for (const auto& [key, entry] : noted_) {
    if (entry) {
      entries[key] = *entry;
    } else {
      entries.erase(key);
    }
  }
  std::string text = fmt::format(
      "# The kernels that were chosen, one for each problem. Used by select.replay.\n"
      "format = \"{}\"\ncount = {}\n\n[kernels]\n",
      kFormat, entries.size());
  for (const auto& [key, entry] : entries) text += fmt::format("# {}\n{} = {}\n", entry.comment, key, TomlString(entry.id));
  MGE_RETURN_IF_ERROR(WriteFileAtomically(path_, AsBytes(text)));
  changed_ = false;
  return absl::OkStatus();
}

}  // namespace mge
