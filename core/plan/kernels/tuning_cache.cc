// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/tuning_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/lines.h"
#include "core/base/shape.h"
#include "core/plan/kernels/file_lock.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace mge {
namespace {

constexpr std::string_view kHead = "mge.tuning/2";
constexpr int64_t kMaxBytes = int64_t{1} << 20;

std::string FieldText(std::string_view text) { return WithoutControl(text.substr(0, 1024)); }

absl::Status Damaged(std::string what) { return Fail(errors::kFileAccess, std::move(what)); }

// Locks the directory's lock file, which is held while a record is read, merged and written. The file is never removed: two
// processes could then hold the lock on different files. It has no contents, so a file of another user needs to be readable
// only.
absl::StatusOr<Fd> LockDirectory(const std::string& directory, const StopControl* stop) {
  const std::string path = fmt::format("{}/lock", directory);
  auto fail = [&](std::string what, std::string fix) {
    return Fail(errors::kFileWrite, fmt::format("cannot lock '{}'", path), {.what = std::move(what), .fix = std::move(fix)});
  };
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0666));
  // Linux may refuse O_CREAT for another user's file in a world-writable directory (fs.protected_regular).
  if (!fd.valid() && errno != ELOOP) {
    const int first = errno;
    fd = Fd(open(path.c_str(), O_RDONLY | kFlags));
    if (!fd.valid()) errno = first;
  }
  if (!fd.valid()) {
    return fail(fmt::format("'{}': {}", path, ErrnoText(errno)),
                errno == ELOOP ? "remove that link" : "let all users of the directory write to it and read its files");
  }
  struct stat st;
  if (fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return fail(fmt::format("'{}' is not a regular file", path), "remove it");
  }
  MGE_RETURN_IF_ERROR(LockFile(fd, path, stop));
  return fd;
}

}  // namespace

const Timing* TuningRecord::Find(std::string_view id) const {
  auto at = std::find_if(timings.begin(), timings.end(), [&](const Timing& t) { return t.id == id; });
  return at == timings.end() ? nullptr : &*at;
}

void TuningRecord::Merge(const TuningRecord& other) {
  text = other.text;
  for (const Timing& t : other.timings) {
    auto at = std::find_if(timings.begin(), timings.end(), [&](const Timing& mine) { return mine.id == t.id; });
    if (at == timings.end()) {
      timings.push_back(t);
    } else {
      *at = t;
    }
  }
}

std::string TuningText(const std::string& key, const TuningRecord& record) {
  std::string out = fmt::format("{}\nkey\t{}\nproblem\t{}\n", kHead, key, FieldText(record.text));
  for (const Timing& t : record.timings) {
    const std::string id = FieldText(t.id), fault = FieldText(t.fault);
    out += t.us >= 0       ? fmt::format("time\t{}\t{}\t{}\n", id, t.us, fault)
           : t.limit_s > 0 ? fmt::format("limit\t{}\t{}\t{}\n", id, t.limit_s, fault)
                           : fmt::format("{}\t{}\t{}\n", t.wrong ? "wrong" : "fails", id, fault);
  }
  return out + fmt::format("sum\t{:016x}\n", XXH3_64bits(out.data(), out.size()));
}

absl::StatusOr<TuningRecord> ParseTuningText(const std::string& key, std::string_view text) {
  size_t last = text.rfind("sum\t");
  if (text.substr(0, text.find('\n')) != kHead) {
    return Damaged("it is not a file of measured times, or it has another version");
  }
  if (last == text.npos || text.substr(last) != fmt::format("sum\t{:016x}\n", XXH3_64bits(text.data(), last))) {
    return Damaged("its checksum does not match its contents");
  }
  TuningRecord record;
  std::string_view rest = text.substr(0, last);
  TakeUntil(rest, '\n');
  while (!rest.empty()) {
    std::string_view line = TakeUntil(rest, '\n');
    std::string_view word = TakeUntil(line, '\t');
    if (word == "key") {
      if (line != key) return Damaged("it belongs to another problem");
    } else if (word == "problem") {
      record.text = line;
    } else {
      Timing t;
      t.id = TakeUntil(line, '\t');
      if (word == "time" || word == "limit") {
        const std::string_view text = TakeUntil(line, '\t');
        double& value = word == "time" ? t.us : t.limit_s;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool number = error == std::errc() && end == text.data() + text.size() && value >= 0;
        if (!number) return Damaged("a time in it is not a number");
        t.fault = line;
      } else if (word == "wrong" || word == "fails") {
        t.wrong = word == "wrong";
        t.fault = line;
      } else {
        return Damaged("it holds a line of an unknown kind");
      }
      record.timings.push_back(std::move(t));
    }
  }
  return record;
}

TuningCache::TuningCache(std::string directory, Logger logger)
    : directory_(std::move(directory)), logger_(logger), writable_(!directory_.empty()) {}

bool TuningCache::writable() {
  std::lock_guard lock(mutex_);
  return writable_;
}

std::optional<TuningRecord> TuningCache::Read(const std::string& key) {
  if (directory_.empty()) return std::nullopt;
  const std::string path = PathOf(key);
  struct stat st;
  if (lstat(path.c_str(), &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  auto record = [&]() -> absl::StatusOr<TuningRecord> {
    MGE_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
    if (file.size > kMaxBytes) return Damaged("it is too large");
    std::string bytes(static_cast<size_t>(file.size), '\0');
    MGE_RETURN_IF_ERROR(ReadRange(file.fd.get(), 0, std::as_writable_bytes(std::span(bytes)), path));
    return ParseTuningText(key, bytes);
  }();
  if (record.ok()) return *std::move(record);
  if (damaged_.insert(key).second) {
    logger_.Warning("measured times in '{}' are ignored and measured again: {}", path, ErrorTitle(record.status()));
  }
  return std::nullopt;
}

std::optional<TuningRecord> TuningCache::Find(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (auto at = records_.find(key); at != records_.end()) return at->second;
  std::optional<TuningRecord> record = Read(key);
  if (record) records_.emplace(key, *record);
  return record;
}

absl::Status TuningCache::Write(const StopControl* stop) {
  std::error_code ec;
  std::filesystem::create_directories(directory_, ec);
  if (ec) {
    return Fail(errors::kFileWrite, fmt::format("cannot create '{}'", directory_), {.what = ec.message()});
  }
  MGE_ASSIGN_OR_RETURN(Fd file_lock, LockDirectory(directory_, stop));
  std::lock_guard lock(mutex_);
  while (!unwritten_.empty()) {
    const auto& [key, record] = *unwritten_.begin();
    TuningRecord merged;
    if (std::optional<TuningRecord> there = Read(key)) merged = *std::move(there);
    merged.Merge(record);
    records_[key].Merge(merged);
    // Another user of the directory may have created a link there.
    MGE_RETURN_IF_ERROR(
        WriteFileAtomically(PathOf(key), AsBytes(TuningText(key, merged)), FileMode::kShared, LinkMode::kReplace));
    unwritten_.erase(unwritten_.begin());
  }
  return absl::OkStatus();
}

void TuningCache::Add(const std::string& key, const TuningRecord& record, const StopControl* stop) {
  {
    std::lock_guard lock(mutex_);
    records_[key].Merge(record);
    if (!writable_) return;
    unwritten_[key].Merge(record);
  }
  absl::Status written = Write(stop);
  if (written.ok() || (stop && !stop->CheckStop().ok())) return;
  std::lock_guard lock(mutex_);
  unwritten_.clear();
  if (!std::exchange(writable_, false)) return;
  const ErrorParts parts = PartsOf(written);
  logger_.Warning(
      "cannot write to '{}', the directory of measured times, so new times are not stored: {}; {}, or name "
      "another directory in select.cache_dir",
      directory_, parts.what.empty() ? ErrorTitle(written) : parts.what,
      parts.fix.empty() ? "give yourself the right to write there" : parts.fix);
}

}  // namespace mge
