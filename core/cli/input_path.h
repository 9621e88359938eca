// SPDX-License-Identifier: Apache-2.0
// Models and tensors from standard input and other pipes.
#pragma once

#include <string>

namespace mge::cli {

// Returns a path by which this process and its children can open the same bytes any number of times. "-" is standard input. A
// pipe (/dev/stdin, /dev/fd/63) is read once, and its bytes are kept in memory until the process ends. Every other path is
// returned as it is; also that of a pipe that cannot be read, so that whoever opens it reports the error.
std::string ReopenablePath(const std::string& path);

// Does so with the path of an option's value "PATH" or "NAME=PATH".
std::string ReopenableValue(const std::string& value);

}  // namespace mge::cli
