// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a file, which identifies it in an allow-list.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// Returns the hash of the whole file as 64 hexadecimal digits, like sha256sum. The file position is ignored and unchanged.
// Errors: kFileAccess; `path` is for its message.
absl::StatusOr<std::string> Sha256OfFile(int fd, std::string_view path);

}  // namespace mge
