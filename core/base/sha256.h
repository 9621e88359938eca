// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a file: what an allow-list names it by.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// 64 hexadecimal digits, as sha256sum prints them. The file's position does not matter and stays. kFileAccess names `path`.
absl::StatusOr<std::string> Sha256OfFile(int fd, std::string_view path);

}  // namespace mge
