// SPDX-License-Identifier: Apache-2.0
// Safe reading of files that others wrote, and atomic writing of own files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
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

// Tells whether a file is still the one that was opened, with the same contents.
struct FileVersion {
  uint64_t device = 0, inode = 0;
  int64_t size = 0;         // in bytes
  int64_t modified_ns = 0;  // time of the last change of the contents
  bool operator==(const FileVersion&) const = default;
};

// A regular file that is open for reading, as it was when it was opened.
struct RegularFile {
  Fd fd;
  int64_t size = 0;  // in bytes
  FileVersion version = {};
};

// Opens a regular file. Fails with kFileAccess for anything else (FIFO, directory, device, socket).
// Never waits for another process.
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path);

// Opens a directory, to ask for its properties. Errors: kFileAccess.
absl::StatusOr<Fd> OpenDirectory(const std::string& path);

// Opens for reading the very file that `probe`, a descriptor of O_PATH, refers to. Fails like OpenRegularFile().
absl::StatusOr<RegularFile> ReopenRegularFile(int probe, std::string_view path);

// Returns the version of an open file now.
FileVersion FileVersionOf(int fd);

// Returns the real path of an open file, or "" if the system does not tell it.
std::string PathOfOpenFile(int fd);

// Reads out.size() bytes from `offset` on. Fails with kFileAccess if the file ends before. `path` is for messages.
absl::Status ReadRange(int fd, int64_t offset, std::span<std::byte> out, std::string_view path);

// Writes `bytes` at `offset`. Errors: kFileWrite, also if the file would exceed the process's limit (ulimit -f); SIGXFSZ is
// not raised. `path` is for messages.
absl::Status WriteRange(int fd, int64_t offset, Bytes bytes, std::string_view path);

// Access mode of a written file: kPrivate is 0600; kShared is 0666 minus the umask.
enum class FileMode { kPrivate, kShared };

// The treatment of a symbolic link in place of the file: its target is replaced, or the link itself.
enum class LinkMode { kFollow, kReplace };

// Writes a file atomically: to a temporary file in the same directory, which Commit() renames to the
// final name. Until then an existing file is unchanged. The temporary file is locked as long as its writer lives; the next
// writer in the directory removes those that are not. Errors: kFileWrite.
//
//   MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create("y.npy"));
//   MGE_RETURN_IF_ERROR(file.Append(bytes));
//   return file.Commit();
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path, FileMode mode = FileMode::kShared,
                                           LinkMode link = LinkMode::kFollow);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the temporary file if Commit() did not succeed

  absl::Status Append(Bytes bytes);
  absl::Status Commit();  // flushes the file to the disk, then renames it

 private:
  AtomicFile() = default;
  absl::Status CreateTemporary(mode_t mode);
  Fd fd_;
  Fd directory_;
  std::string path_;       // as the user wrote it
  std::string name_;       // in directory_
  std::string temporary_;  // in directory_; empty after Commit
  int64_t written_ = 0;
};

// Writes a whole file with an AtomicFile.
absl::Status WriteFileAtomically(const std::string& path, Bytes bytes, FileMode mode = FileMode::kShared,
                                 LinkMode link = LinkMode::kFollow);

}  // namespace mge
