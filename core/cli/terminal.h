// SPDX-License-Identifier: Apache-2.0
// The terminal that shows the command's output: its colours and its width.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace mge::cli {

// Sets the process's variables, NAME=VALUE, of which NO_COLOR and TERM are read. They end with null, as main() receives them.
void SetVariables(const char* const* variables);

// Sets when text is coloured: "always", "never", or "auto", the default: on a terminal, unless the variable NO_COLOR is set to
// anything, or TERM to "dumb".
void SetColor(std::string_view when);

enum class Style { kBold, kRed };
// Returns the text with the codes of the style for a terminal, if output to `file` is coloured; else the text.
std::string Styled(std::FILE* file, Style style, std::string_view text);

// Returns the columns of the terminal that shows stdout, or SIZE_MAX if it is none.
size_t OutputColumns();

}  // namespace mge::cli
