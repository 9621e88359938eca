// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file_trust.h"
#include "core/base/tensor.h"
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

absl::StatusOr<RegularFile> CheckRegular(Fd fd, std::string_view path) {
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return CannotRead(path, ErrnoText(errno));
  if (!S_ISREG(st.st_mode)) {
    return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path),
                {.what = fmt::format("it is {}", KindOfFile(st.st_mode)), .fix = "name a regular file"});
  }
  return RegularFile{std::move(fd), static_cast<int64_t>(st.st_size)};
}

bool NameIsPlain(const std::string& name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != std::string::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part(name.data() + begin, end - begin);
    if (part.empty() || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

// Calls openat for a plain name. Fails if any component is a symbolic link.
int OpenWithoutLinks(int directory, const std::string& name, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = syscall(SYS_openat2, directory, name.c_str(), &how, sizeof(how));
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) return static_cast<int>(fd);

  // openat2 is not available (older kernel or sandbox): open one component at a time.
  Fd at;
  size_t begin = 0;
  for (size_t slash; (slash = name.find('/', begin)) != std::string::npos; begin = slash + 1) {
    std::string part = name.substr(begin, slash - begin);
    Fd next(openat(at.valid() ? at.get() : directory, part.c_str(), O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
    if (!next.valid()) return -1;
    at = std::move(next);
  }
  return openat(at.valid() ? at.get() : directory, name.c_str() + begin, flags | O_NOFOLLOW);
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

absl::StatusOr<RegularFile> OpenBeneath(int directory, const std::string& name) {
  if (!NameIsPlain(name)) {
    return CannotRead(name, "the name must be relative, without '..' and without empty parts");
  }
  Fd probe(OpenWithoutLinks(directory, name, O_PATH | O_CLOEXEC));
  if (!probe.valid()) {
    return CannotRead(name, errno == ELOOP ? "the path has a symbolic link" : ErrnoText(errno));
  }
  struct stat st;
  if (fstat(probe.get(), &st) != 0) return CannotRead(name, ErrnoText(errno));
  if (!S_ISREG(st.st_mode)) return CannotRead(name, fmt::format("it is {}", KindOfFile(st.st_mode)));
  if (st.st_nlink != 1) {
    return CannotRead(name, fmt::format("it has {} hard links; one is allowed", st.st_nlink));
  }
  Fd fd(OpenWithoutLinks(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return CannotRead(name, ErrnoText(errno));
  struct stat opened;
  if (fstat(fd.get(), &opened) != 0) return CannotRead(name, ErrnoText(errno));
  if (opened.st_dev != st.st_dev || opened.st_ino != st.st_ino) {
    return CannotRead(name, "it was replaced while it was being opened");
  }
  return RegularFile{std::move(fd), static_cast<int64_t>(opened.st_size)};
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

namespace {

// The deleter of every MappedFile. ReleasePagesOf() recognises an owner without a type by it.
struct FileDeleter {
  const MappedFile* file;
  void operator()(const MappedFile* f) const { delete f; }
};

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path, int64_t max_bytes,
                                                                   std::string limit_fix) {
  MGE_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
  if (file.size > max_bytes) {
    return Fail(
        errors::kLimit, fmt::format("'{}' is too large", path),
        {.what = fmt::format("it has {} bytes; the limit is {}", file.size, max_bytes), .fix = std::move(limit_fix)});
  }
  return FromFile(std::move(file), path);
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::FromFile(RegularFile file, const std::string& path) {
  auto* made = new MappedFile;
  std::shared_ptr<MappedFile> out(made, FileDeleter{made});
  size_t size = static_cast<size_t>(file.size);
  if (size == 0) return out;
  if (WhyNotTrusted(file.fd.get()).empty()) {
    void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
    if (p != MAP_FAILED) {
      out->bytes_ = {static_cast<const std::byte*>(p), size};
      out->mapped_ = true;
      return out;
    }
  }
  MGE_ASSIGN_OR_RETURN(out->memory_, UnlimitedHostAllocator().Allocate(file.size));
  MGE_RETURN_IF_ERROR(ReadRange(file.fd.get(), 0, {out->memory_.get(), size}, path));
  out->bytes_ = {out->memory_.get(), size};
  return out;
}

MappedFile::~MappedFile() {
  if (mapped_) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::ReleasePages(Bytes range) const {
  if (!mapped_) return;
  uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t begin = (reinterpret_cast<uintptr_t>(range.data()) + page - 1) / page * page;
  uintptr_t end = (reinterpret_cast<uintptr_t>(range.data()) + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void ReleasePagesOf(const std::shared_ptr<const void>& owner, Bytes range) {
  if (const auto* deleter = std::get_deleter<FileDeleter>(owner)) deleter->file->ReleasePages(range);
}

}  // namespace mge
