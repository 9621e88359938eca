// SPDX-License-Identifier: Apache-2.0
// Conversion of texts of several lines, such as a compiler's log, for messages of one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Returns the lines of a text, each without blanks at both ends. Empty lines are left out. The result refers to `text`.
std::vector<std::string_view> LinesOf(std::string_view text);

// Returns the lines joined by " | ", with control characters escaped.
std::string OneLine(std::string_view text);

}  // namespace mge
