// SPDX-License-Identifier: Apache-2.0
// Texts of several lines, such as a compiler's log, where a message has one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Returns the lines of a text without blanks at their ends. Leaves out empty lines.
std::vector<std::string_view> LinesOf(std::string_view text);

// Returns the lines joined by " | ", with control characters escaped.
std::string OneLine(std::string_view text);

}  // namespace mge
