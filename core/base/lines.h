// SPDX-License-Identifier: Apache-2.0
// Parts of texts: lines, and fields up to a separator. Conversion of several lines, such as a compiler's log, to one. Lines
// that are cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Returns the lines of a text, each without blanks at both ends. Empty lines are left out. The result refers to `text`.
std::vector<std::string_view> LinesOf(std::string_view text);

// Removes the text up to the first `end` from the front of `rest`, and `end` itself. Returns that text. If there is no `end`,
// takes all.
std::string_view TakeUntil(std::string_view& rest, char end);

// Returns the text with control characters replaced by spaces.
std::string WithoutControl(std::string_view text);

// Returns the first `columns` columns of a line of UTF-8, with "…" in place of the rest if it is longer.
std::string CutLine(std::string_view line, size_t columns);

// Returns the lines joined by " | ", with control characters escaped.
std::string OneLine(std::string_view text);

}  // namespace mge
