// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/quarantine.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kFirstLine = "mge.quarantine/1";
constexpr int64_t kMaxEntryBytes = 1 << 16;

// Returns whether a key is a safe file name.
bool IsKey(std::string_view key) {
  return !key.empty() && key.size() <= 128 && key.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz-") == key.npos;
}

std::string Line(std::string_view text) { return EscapeControl(text) + "\n"; }

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok() || file->size > kMaxEntryBytes) return lines;
  std::string text(static_cast<size_t>(file->size), '\0');
  if (!ReadRange(file->fd.get(), 0, std::as_writable_bytes(std::span(text)), path).ok()) return lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

bool Quarantine::empty() const { return directory_.empty() || access(directory_.c_str(), F_OK) != 0; }

std::optional<Quarantine::Entry> Quarantine::Find(const std::string& key) const {
  if (directory_.empty() || !IsKey(key)) return std::nullopt;
  std::string path = directory_ + "/" + key;
  if (access(path.c_str(), F_OK) != 0) return std::nullopt;
  Entry entry = {key, {}, {}, "the reason was not recorded"};
  std::vector<std::string> lines = Lines(path);
  if (lines.size() >= 4 && lines[0] == kFirstLine) entry = {key, lines[1], lines[2], lines[3]};
  return entry;
}

std::vector<Quarantine::Entry> Quarantine::All() const {
  std::vector<Entry> out;
  if (directory_.empty()) return out;
  DIR* dir = opendir(directory_.c_str());
  if (!dir && errno == ENOMEM) throw std::bad_alloc();
  if (!dir) return out;
  while (const dirent* row = readdir(dir)) {
    if (std::optional<Entry> entry = Find(row->d_name)) out.push_back(*std::move(entry));
  }
  closedir(dir);
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return out;
}

absl::Status Quarantine::Add(const Entry& entry) const {
  if (directory_.empty() || !IsKey(entry.key)) {
    return Fail(errors::kFileWrite, fmt::format("'{}' cannot be put into quarantine", entry.path),
                {.what = directory_.empty() ? "there is no state folder" : "its build id cannot be a file name",
                 .fix = "set HOME or XDG_STATE_HOME"});
  }
  std::error_code code;
  std::filesystem::create_directories(directory_, code);
  if (code) {
    return Fail(errors::kFileWrite, fmt::format("cannot create '{}'", directory_),
                {.what = code.message(), .fix = "set XDG_STATE_HOME to a folder that you may write"});
  }
  return WriteFileAtomically(PathOf(entry), AsBytes(ContentOf(entry)));
}

std::string Quarantine::PathOf(const Entry& entry) const {
  return directory_.empty() || !IsKey(entry.key) ? "" : directory_ + "/" + entry.key;
}

std::string Quarantine::ContentOf(const Entry& entry) {
  return Line(kFirstLine) + Line(entry.name) + Line(entry.path) + Line(entry.reason);
}

absl::Status Quarantine::Remove(const std::string& key) const {
  if (!IsKey(key) || (unlink((directory_ + "/" + key).c_str()) != 0 && errno != ENOENT)) {
    return Fail(errors::kFileWrite, fmt::format("cannot remove '{}/{}'", directory_, key), {.what = ErrnoText(errno)});
  }
  return absl::OkStatus();
}

}  // namespace mge
