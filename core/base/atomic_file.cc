// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status CannotWrite(std::string_view path, std::string what, std::string fix = {}) {
  return Fail(errors::kFileWrite, fmt::format("cannot write '{}'", path), {.what = std::move(what), .fix = std::move(fix)});
}

// Blocks SIGXFSZ on this thread, and removes it if it is pending at the end. A write beyond RLIMIT_FSIZE
// then fails with EFBIG; otherwise the signal would end the process.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    if (sigismember(&before_, SIGXFSZ)) return;
    const int error = errno;  // of the write
    timespec none = {};
    while (sigtimedwait(&signal_, nullptr, &none) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

 private:
  sigset_t signal_;
  sigset_t before_;
};

constexpr std::string_view kTemporaryBegin = ".mge-", kTemporaryEnd = ".tmp";

// Removes the temporary files of writers that were killed: those that nobody has locked. Files that this user may not open or
// remove stay.
void RemoveAbandoned(int directory) {
  const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy < 0 ? nullptr : fdopendir(copy);
  if (!list) {
    if (copy >= 0) close(copy);
    return;
  }
  while (const dirent* entry = readdir(list)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kTemporaryBegin) || !name.ends_with(kTemporaryEnd)) continue;
    const Fd file(openat(directory, entry->d_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
    struct stat st;
    if (!file.valid() || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlinkat(directory, entry->d_name, 0);
  }
  closedir(list);
}

}  // namespace

absl::Status WriteRange(int fd, int64_t offset, Bytes bytes, std::string_view path) {
  NoSizeSignal guard;
  for (size_t done = 0; done < bytes.size();) {
    const int64_t at = offset + static_cast<int64_t>(done);
    ssize_t n = pwrite(fd, bytes.data() + done, std::min<size_t>(bytes.size() - done, 1 << 30), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : EIO;
      return CannotWrite(
          path, fmt::format("{}: {} bytes were written, {} more are needed", ErrnoText(error), at, bytes.size() - done),
          error == ENOSPC || error == EDQUOT ? "free space on the device"
          : error == EFBIG                   ? "raise the limit of the process (ulimit -f)"
                                             : "");
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, FileMode mode, LinkMode link) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return CannotWrite(path, "the name is empty or holds a zero byte");
  std::string target = path;
  struct stat st;
  if (link == LinkMode::kFollow && stat(path.c_str(), &st) == 0) {
    if (!S_ISREG(st.st_mode)) return CannotWrite(path, "something that is not a regular file is there");
    // If the path is a symbolic link, replace its target, not the link. Another process may have removed the file meanwhile.
    char* real = realpath(path.c_str(), nullptr);
    if (!real && errno != ENOENT) return CannotWrite(path, ErrnoText(errno));
    if (real) target = real;
    std::free(real);
  }
  AtomicFile file;
  file.path_ = path;
  size_t slash = target.rfind('/');
  std::string directory = slash == std::string::npos ? "." : target.substr(0, std::max<size_t>(slash, 1));
  file.name_ = slash == std::string::npos ? target : target.substr(slash + 1);
  if (file.name_.empty()) return CannotWrite(path, "it names a directory");
  file.directory_ = Fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_.valid()) {
    return CannotWrite(path, fmt::format("directory '{}': {}", directory, ErrnoText(errno)),
                       "create the directory, or name another file");
  }
  RemoveAbandoned(file.directory_.get());
  if (absl::Status created = file.CreateTemporary(mode == FileMode::kPrivate ? 0600 : 0666); !created.ok()) {
    return CannotWrite(path, fmt::format("directory '{}': {}", directory, ErrorTitle(created)));
  }
  return file;
}

absl::Status AtomicFile::CreateTemporary(mode_t mode) {
  for (;;) {
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != sizeof(random)) return absl::InternalError(ErrnoText(errno));
    std::string name = fmt::format("{}{:016x}{:016x}{}", kTemporaryBegin, random[0], random[1], kTemporaryEnd);
    fd_ = Fd(openat(directory_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd_.valid()) return absl::InternalError(ErrnoText(errno));
    flock(fd_.get(), LOCK_EX);  // a file system without locks never lets others remove the file
    struct stat st;
    // Another writer may have taken the file for an abandoned one before it was locked.
    if (fstat(fd_.get(), &st) == 0 && st.st_nlink == 0) continue;
    temporary_ = std::move(name);
    return absl::OkStatus();
  }
}

AtomicFile::~AtomicFile() {
  if (directory_.valid() && !temporary_.empty()) unlinkat(directory_.get(), temporary_.c_str(), 0);
}

absl::Status AtomicFile::Append(Bytes bytes) {
  MGE_RETURN_IF_ERROR(WriteRange(fd_.get(), written_, bytes, path_));
  written_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return CannotWrite(path_, fmt::format("flushing to the disk: {}", ErrnoText(errno)));
  if (renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0) {
    return CannotWrite(path_, fmt::format("renaming: {}", ErrnoText(errno)));
  }
  temporary_.clear();
  fsync(directory_.get());  // makes the rename survive a power loss; without it the old file would be back
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, Bytes bytes, FileMode mode, LinkMode link) {
  MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, mode, link));
  MGE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace mge
