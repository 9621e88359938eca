// SPDX-License-Identifier: Apache-2.0
#include "core/base/input_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::string_view kMemoryPath = "/memfd:", kDeleted = " (deleted)";

absl::Status CannotReadInput(std::string_view path, int error) {
  return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path), {.what = ErrnoText(error)});
}

// Returns the descriptor of this process that the path names, or -1.
int OwnDescriptor(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int fd = -1;
    if (!path.starts_with(folder)) continue;
    const char* end = path.data() + path.size();
    if (auto [at, error] = std::from_chars(path.data() + folder.size(), end, fd); error == std::errc() && at == end)
      return fd;
  }
  return -1;
}

// Opens the pipe or socket that the path names. Returns an invalid descriptor if it names something else.
Fd OpenPipe(const std::string& path) {
  struct stat st;
  if (const int own = OwnDescriptor(path); own >= 0 && fstat(own, &st) == 0) {
    // Opening the path again fails for a socket, and for a pipe of another user (sudo).
    return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ? Fd(fcntl(own, F_DUPFD_CLOEXEC, 0)) : Fd();
  }
  const Fd probe(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct statfs system;
  if (!probe.valid() || fstat(probe.get(), &st) != 0 || !S_ISFIFO(st.st_mode)) return Fd();
  if (fstatfs(probe.get(), &system) != 0 || system.f_type != PIPEFS_MAGIC) return Fd();  // a named FIFO
  return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

absl::StatusOr<size_t> ReadSome(int fd, std::span<std::byte> out, std::string_view path) {
  for (;;) {
    const ssize_t n = read(fd, out.data(), out.size());
    if (n >= 0) return static_cast<size_t>(n);
    pollfd wait = {fd, POLLIN, 0};
    if (errno == EAGAIN) poll(&wait, 1, -1);
    if (errno != EAGAIN && errno != EINTR) return CannotReadInput(path, errno);
  }
}

absl::StatusOr<RegularFile> ReadPipe(const Fd& from, const std::string& path, int64_t max_bytes,
                                     const std::string& limit_fix) {
  RegularFile out;
  const std::string name = path.substr(0, 200);  // the system's limit is 249
  out.fd = Fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!out.fd.valid()) return CannotReadInput(path, errno);
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    MGE_ASSIGN_OR_RETURN(const size_t n, ReadSome(from.get(), buffer, path));
    if (n == 0) break;
    if (static_cast<int64_t>(n) > max_bytes - out.size) {
      return Fail(errors::kLimit, fmt::format("'{}' is too large", path),
                  {.what = fmt::format("it has more than {} bytes", max_bytes), .fix = limit_fix});
    }
    MGE_RETURN_IF_ERROR(WriteRange(out.fd.get(), out.size, {buffer.data(), n}, path));
    out.size += static_cast<int64_t>(n);
  }
  if (fcntl(out.fd.get(), F_ADD_SEALS, kSeals) != 0) return CannotReadInput(path, errno);
  return out;
}

}  // namespace

absl::StatusOr<RegularFile> OpenInput(const std::string& path, int64_t max_bytes, const std::string& limit_fix) {
  if (const Fd pipe = OpenPipe(path); pipe.valid()) return ReadPipe(pipe, path, max_bytes, limit_fix);
  MGE_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
  if (file.size > max_bytes) {
    return Fail(errors::kLimit, fmt::format("'{}' is too large", path),
                {.what = fmt::format("it has {} bytes; the limit is {}", file.size, max_bytes), .fix = limit_fix});
  }
  return file;
}

absl::StatusOr<InputBytes> ReadInput(const std::string& path, int64_t max_bytes, const std::string& limit_fix) {
  MGE_ASSIGN_OR_RETURN(const RegularFile file, OpenInput(path, max_bytes, limit_fix));
  const int fd = file.fd.get();
  const auto size = static_cast<size_t>(file.size);
  InputBytes out;
  out.name = InputName(path, fd);
  if (IsPipeMemory(fd) && size > 0) {
    if (void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0); p != MAP_FAILED) {
      out.bytes = {static_cast<const std::byte*>(p), size};
      out.owner = std::shared_ptr<const void>(p, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
      return out;
    }
  }
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, UnlimitedHostAllocator().Allocate(file.size));
  MGE_RETURN_IF_ERROR(ReadRange(fd, 0, {memory.get(), size}, out.name));
  out.bytes = {memory.get(), size};
  out.owner = std::move(memory);
  return out;
}

bool NamesPipe(const std::string& path) { return OpenPipe(path).valid(); }

bool IsPipeMemory(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

std::string InputName(const std::string& path, int fd) {
  std::string real = IsPipeMemory(fd) ? PathOfOpenFile(fd) : std::string();
  if (!real.starts_with(kMemoryPath) || !real.ends_with(kDeleted)) return path;
  return real.substr(kMemoryPath.size(), real.size() - kMemoryPath.size() - kDeleted.size());
}

}  // namespace mge
