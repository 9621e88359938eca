// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::string_view KindOfFile(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "not a regular file";
}

absl::Status CannotRead(std::string_view path, std::string what) {
  return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path), {.what = std::move(what)});
}

FileVersion VersionFrom(const struct stat& st) {
  return {st.st_dev, st.st_ino, st.st_size, int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec};
}

absl::StatusOr<RegularFile> CheckRegular(Fd fd, std::string_view path) {
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return CannotRead(path, ErrnoText(errno));
  if (!S_ISREG(st.st_mode)) {
    return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path),
                {.what = fmt::format("it is {}", KindOfFile(st.st_mode)),
                 .fix = "name a regular file, or pass the bytes through a pipe to /dev/stdin"});
  }
  return RegularFile{std::move(fd), static_cast<int64_t>(st.st_size), VersionFrom(st)};
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) return CannotRead(path, "the name holds a zero byte");
  // O_PATH does not call the driver of a device file; opening one may have side effects.
  Fd probe(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!probe.valid()) return CannotRead(path, ErrnoText(errno));
  MGE_RETURN_IF_ERROR(CheckRegular(std::move(probe), path).status());
  Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return CannotRead(path, ErrnoText(errno));
  return CheckRegular(std::move(fd), path);
}

absl::StatusOr<Fd> OpenDirectory(const std::string& path) {
  Fd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return CannotRead(path, ErrnoText(errno));
  return fd;
}

absl::StatusOr<RegularFile> ReopenRegularFile(int probe, std::string_view path) {
  struct stat st;
  if (fstat(probe, &st) != 0) return CannotRead(path, ErrnoText(errno));
  if (!S_ISREG(st.st_mode)) return CannotRead(path, fmt::format("it is {}", KindOfFile(st.st_mode)));
  Fd fd(open(fmt::format("/proc/self/fd/{}", probe).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return CannotRead(path, ErrnoText(errno));
  return CheckRegular(std::move(fd), path);
}

FileVersion FileVersionOf(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 ? VersionFrom(st) : FileVersion();
}

std::string PathOfOpenFile(int fd) {
  char buffer[PATH_MAX];
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), buffer, sizeof(buffer));
  if (length <= 0 || length == sizeof(buffer) || buffer[0] != '/') return {};
  return std::string(buffer, static_cast<size_t>(length));
}

absl::Status ReadRange(int fd, int64_t offset, std::span<std::byte> out, std::string_view path) {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = pread(fd, out.data() + done, std::min<size_t>(out.size() - done, 1 << 30),
                      static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(path, ErrnoText(errno));
    if (n == 0) {
      return CannotRead(path, fmt::format("it ends at byte {}; {} more are needed", offset + static_cast<int64_t>(done),
                                          out.size() - done));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace mge
