// SPDX-License-Identifier: Apache-2.0
// A file that is read again while it is in use, as long as it does not change.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/file.h"

namespace mge {

// Safe on any thread.
class SourceFile {
 public:
  // `name` is for messages. Without `keep_open`, each Read() opens the file again.
  SourceFile(RegularFile file, std::string name, bool keep_open = true);

  const std::string& name() const { return name_; }
  int64_t size() const { return version_.size; }
  const FileVersion& version() const { return version_; }

  // Reads out.size() bytes from `offset` on. Fails with kFileAccess if the file is not the one that was opened, or has changed
  // since: in device, inode, size or time of modification.
  absl::Status Read(int64_t offset, std::span<std::byte> out) const;

  // Returns a read-only mapping of `size` bytes from `offset` on, or nullptr if another user could change the file. Fails like
  // Read(). Only for bytes that are hardly ever read: if the owner truncates the file, a read ends the process.
  absl::StatusOr<std::shared_ptr<std::byte>> Map(int64_t offset, int64_t size) const;
  // Fails like Read() if mapped bytes may have changed.
  absl::Status CheckMapped() const { return Check(fd_.get()); }

 private:
  absl::Status Check(int fd) const;
  const std::string name_;
  const FileVersion version_;
  std::string path_;  // if the file is not kept open
  Fd fd_;
  bool trusted_ = false;  // nobody else can change the open file
};

}  // namespace mge
