// SPDX-License-Identifier: Apache-2.0
// Opens what a user passes as a file: a regular file, or a pipe such as /dev/stdin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/file.h"

namespace mge {

// Opens a regular file. If the path names a pipe or a socket that this process holds (/dev/stdin in a pipeline, /dev/fd/63 of a
// shell's `<(...)`), reads it to its end, into memory that nobody can change and that is a RegularFile like any other. A
// named FIFO is refused, because nobody may write to it. Errors: kFileAccess; kLimit, with `limit_fix` as its fix, if there
// are more than `max_bytes`.
absl::StatusOr<RegularFile> OpenInput(const std::string& path, int64_t max_bytes, const std::string& limit_fix = {});

// The bytes of an input, in memory that nobody else can change.
struct InputBytes {
  Bytes bytes;
  std::shared_ptr<const void> owner;  // of the bytes
  std::string name;                   // InputName()
};

// Opens an input and reads all of it. Fails like OpenInput().
absl::StatusOr<InputBytes> ReadInput(const std::string& path, int64_t max_bytes, const std::string& limit_fix = {});

// Returns true if the path names a pipe or a socket that OpenInput() would read. Reads nothing.
bool NamesPipe(const std::string& path);

// Returns true if the open file is memory that OpenInput() made from a pipe.
bool IsPipeMemory(int fd);

// Returns the name of an input for messages: `path`, or the path of the pipe from which the open file was read.
std::string InputName(const std::string& path, int fd);

}  // namespace mge
