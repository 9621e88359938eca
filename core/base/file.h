// SPDX-License-Identifier: Apache-2.0
// Files that others wrote, opened without risk, and files of our own, written whole or not at all.
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

inline Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An owned file descriptor, closed at the end of its life. -1 when empty.
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

// A regular file, open for reading, and its size when it was opened.
struct RegularFile {
  Fd fd;
  int64_t size = 0;
};

// Opens a regular file. Anything else (FIFO, directory, device, socket) is refused at once: the
// call never waits for another process. kFileAccess.
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path);

// Opens a directory for OpenBeneath. kFileAccess.
absl::StatusOr<Fd> OpenDirectory(const std::string& path);

// Opens the regular file `name` beneath `directory`: no "..", no absolute path, no symbolic link on
// the way, one hard link only. What fails these rules is never opened for reading. kFileAccess says
// which rule it was.
absl::StatusOr<RegularFile> OpenBeneath(int directory, const std::string& name);

// Why someone else than root and the present user could change the open file or directory, or
// replace it or a directory above it (a sticky directory of root passes there). Empty if nobody could.
std::string WhyNotTrusted(int fd);

// Reads [offset, offset+out.size()) whole. kFileAccess if the file ends before.
absl::Status ReadRange(int fd, int64_t offset, std::span<std::byte> out, std::string_view path);

// Writes bytes from an offset on. kFileWrite; beyond a limit of the process (ulimit -f), too, without its signal.
absl::Status WriteRange(int fd, int64_t offset, Bytes bytes, std::string_view path);

// The bytes of a file in memory. Mapped where nobody else could change them under us, else read
// into memory. Its owner's truncating a mapped file during a run is outside of what we guard
// against.
class MappedFile {
 public:
  // kLimit if the file is larger than max_bytes. The fix names `limit_fix`.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path,
                                                                int64_t max_bytes,
                                                                std::string limit_fix = {});
  // The same for a file that is open already; `path` is for messages.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> FromFile(RegularFile file,
                                                                    const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return bytes_; }
  bool is_mapped() const { return mapped_; }

  // Tells the system that the pages inside of `range` are not needed soon; they stay readable.
  void ReleasePages(Bytes range) const;

 private:
  MappedFile() = default;
  Bytes bytes_;
  bool mapped_ = false;
  std::shared_ptr<std::byte> memory_;  // if not mapped
};

// Who may read a file that we write: kPrivate is 0600, kShared what the umask leaves of 0666.
enum class FileMode { kPrivate, kShared };

// A file that appears under its name whole, at Commit(), or not at all: it is written beside its
// place under a random name. Errors are kFileWrite, and what was there before is unchanged.
//
//   MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create("y.npy"));
//   MGE_RETURN_IF_ERROR(file.Append(bytes));
//   return file.Commit();
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path,
                                           FileMode mode = FileMode::kShared);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // without Commit: removes what was written

  absl::Status Append(Bytes bytes);
  absl::Status Commit();  // flushes to the disk, then renames

 private:
  AtomicFile() = default;
  Fd fd_;
  Fd directory_;
  std::string path_;       // as the user wrote it
  std::string name_;       // in directory_
  std::string temporary_;  // in directory_; empty after Commit
  int64_t written_ = 0;
};

// Create, Append, Commit.
absl::Status WriteFileAtomically(const std::string& path, Bytes bytes,
                                 FileMode mode = FileMode::kShared);

}  // namespace mge
