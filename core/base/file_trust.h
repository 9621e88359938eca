// SPDX-License-Identifier: Apache-2.0
// Checks who could change a file: its owner, mode and access list, and those of every directory above it.
#pragma once

#include <string>

namespace mge {

// Checks whether another user (not root) could change or replace the open file or directory, or replace
// a directory above it. Returns the reason if one could, else "". A sticky directory of root (/tmp) is
// accepted above the file.
std::string WhyNotTrusted(int fd);

}  // namespace mge
