// SPDX-License-Identifier: Apache-2.0
#include "core/base/source_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/errors.h"
#include "core/base/file_trust.h"
#include "core/base/input_file.h"
#include "fmt/format.h"

namespace mge {

SourceFile::SourceFile(RegularFile file, std::string name, bool keep_open) : name_(std::move(name)), version_(file.version) {
  if (!keep_open) path_ = PathOfOpenFile(file.fd.get());
  if (path_.empty()) fd_ = std::move(file.fd);
  trusted_ = fd_.valid() && (IsPipeMemory(fd_.get()) || WhyNotTrusted(fd_.get()).empty());
}

absl::Status SourceFile::Check(int fd) const {
  const FileVersion now = FileVersionOf(fd);
  if (now == version_) return absl::OkStatus();
  const bool same_file = now.device == version_.device && now.inode == version_.inode;
  std::string what = "another file has replaced it";
  if (same_file) {
    what = now.size == version_.size ? "it was written again"
                                     : fmt::format("it had {} bytes, and now has {}", version_.size, now.size);
  }
  return Fail(errors::kFileAccess, fmt::format("'{}' has changed since it was opened", name_),
              {.what = std::move(what),
               .fix = "load the model again; to replace a model in use, rename a new file over the old one"});
}

absl::Status SourceFile::Read(int64_t offset, std::span<std::byte> out) const {
  RegularFile again;
  if (!fd_.valid()) {
    MGE_ASSIGN_OR_RETURN(again, OpenRegularFile(path_));
  }
  const int fd = fd_.valid() ? fd_.get() : again.fd.get();
  MGE_RETURN_IF_ERROR(Check(fd));
  const absl::Status read = ReadRange(fd, offset, out, name_);
  MGE_RETURN_IF_ERROR(Check(fd));  // before the error of a file that was truncated meanwhile
  return read;
}

absl::StatusOr<std::shared_ptr<std::byte>> SourceFile::Map(int64_t offset, int64_t size) const {
  if (!trusted_) return nullptr;
  MGE_RETURN_IF_ERROR(Check(fd_.get()));
  const int64_t before = offset % sysconf(_SC_PAGESIZE);
  const auto length = static_cast<size_t>(size + before);
  void* p = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd_.get(), offset - before);
  if (p == MAP_FAILED) return nullptr;
  auto* bytes = static_cast<std::byte*>(p) + before;
  return std::shared_ptr<std::byte>(bytes, [p, length](std::byte*) { munmap(p, length); });
}

}  // namespace mge
