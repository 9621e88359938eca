// SPDX-License-Identifier: Apache-2.0
// Pages of HTML that a browser shows without a network: one file, without scripts.
#pragma once

#include <string>
#include <string_view>

#include "core/cli/common.h"

namespace mge::cli::html {

// Escapes a text for HTML and SVG, also within quotes. Names of a model come from anybody.
std::string Text(std::string_view text);

// Writes a page with that body, which is HTML, to a file. Its style has light and dark colours. Its content policy forbids scripts
// and every other file. Returns the exit code; reports a file that cannot be written.
int WritePage(const Globals& globals, const std::string& path, std::string_view title, std::string_view body);

// The number of steps or buffers that a page shows: a browser shows more only slowly.
inline constexpr size_t kMaxItems = 3000;

// Returns a paragraph that says how many items are left out, or "" if none is.
std::string LeftOut(size_t items, std::string_view what);

}  // namespace mge::cli::html
