// SPDX-License-Identifier: Apache-2.0
// Files with pages for a browser, which the option --html names.
#pragma once

#include <string>

#include "core/cli/common.h"

namespace mge::cli {

// Declares the option --html, which stores a path in `path`.
Argument AddPageOption(
    Arguments app, std::string& path,
    const std::string& doc = "Writes a picture there: one page of HTML for a browser, which needs no network");

// Checks that a page can be written to `path`, before a command takes time. Does nothing if `path` is empty. Returns the exit
// code; reports a path that cannot be written.
int CheckPagePath(const Globals& globals, const std::string& path);

// Writes a page atomically. Returns the exit code; reports a file that cannot be written, and says that one was written.
int WritePage(const Globals& globals, const std::string& path, const std::string& page);

}  // namespace mge::cli
