// SPDX-License-Identifier: Apache-2.0
// Safe reading of files that others wrote, and atomic writing of own files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"

namespace mge {

using Bytes = std::span<const std::byte>;

inline Bytes AsBytes(std::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }
inline std::string_view AsText(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Owns a file descriptor and closes it on destruction. -1 if empty.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A regular file that is open for reading, and its size in bytes when it was opened.
struct RegularFile {
  Fd fd;
  int64_t size = 0;
};

// Opens a regular file. Fails with kFileAccess for anything else (FIFO, directory, device, socket).
// Never waits for another process.
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path);

// Opens a directory for OpenBeneath. Errors: kFileAccess.
absl::StatusOr<Fd> OpenDirectory(const std::string& path);

// Opens the regular file `name` beneath `directory`. `name` must be a relative path without ".." and
// without symbolic links, and the file must have one hard link only. Otherwise the file is not
// opened for reading, and kFileAccess names the violated rule.
absl::StatusOr<RegularFile> OpenBeneath(int directory, const std::string& name);

// Reads out.size() bytes from `offset` on. Fails with kFileAccess if the file ends before. `path` is for messages.
absl::Status ReadRange(int fd, int64_t offset, std::span<std::byte> out, std::string_view path);

// Writes `bytes` at `offset`. Errors: kFileWrite, also if the file would exceed the process's limit (ulimit -f); SIGXFSZ is
// not raised. `path` is for messages.
absl::Status WriteRange(int fd, int64_t offset, Bytes bytes, std::string_view path);

// The read-only bytes of a file. The file is mapped if no other user could change it, else read into memory.
// If the owner truncates a mapped file while it is in use, the process may crash.
class MappedFile {
 public:
  // Errors: kFileAccess; kLimit, with `limit_fix` as its fix, if the file is larger than `max_bytes`.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path, int64_t max_bytes,
                                                                std::string limit_fix = {});
  // Does the same for an open file, without a size limit. `path` is for messages.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> FromFile(RegularFile file, const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return bytes_; }
  bool is_mapped() const { return mapped_; }

  // Lets the system release the whole pages in `range`. They stay readable: the system loads them again on access.
  void ReleasePages(Bytes range) const;

 private:
  MappedFile() = default;
  Bytes bytes_;
  bool mapped_ = false;
  std::shared_ptr<std::byte> memory_;  // if not mapped
};

// Calls ReleasePages(range) if `owner`, the owner of these bytes, is a MappedFile. Does nothing for another owner.
void ReleasePagesOf(const std::shared_ptr<const void>& owner, Bytes range);

// Access mode of a written file: kPrivate is 0600; kShared is 0666 minus the umask.
enum class FileMode { kPrivate, kShared };

// Writes a file atomically: to a temporary file in the same directory, which Commit() renames to the
// final name. Until then an existing file is unchanged. Errors: kFileWrite.
//
//   MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create("y.npy"));
//   MGE_RETURN_IF_ERROR(file.Append(bytes));
//   return file.Commit();
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path, FileMode mode = FileMode::kShared);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the temporary file if Commit() did not succeed

  absl::Status Append(Bytes bytes);
  absl::Status Commit();  // flushes the file to the disk, then renames it

 private:
  AtomicFile() = default;
  Fd fd_;
  Fd directory_;
  std::string path_;       // as the user wrote it
  std::string name_;       // in directory_
  std::string temporary_;  // in directory_; empty after Commit
  int64_t written_ = 0;
};

// Writes a whole file with an AtomicFile.
absl::Status WriteFileAtomically(const std::string& path, Bytes bytes, FileMode mode = FileMode::kShared);

}  // namespace mge
