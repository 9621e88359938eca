// SPDX-License-Identifier: Apache-2.0
// Texts of several lines, such as a compiler's log, where a message has one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge {

// The lines of a text, without blanks at their ends, and without those that are empty then.
std::vector<std::string_view> LinesOf(std::string_view text);

// All of them as one line that can be read: joined by " | ", the rest as EscapeControl.
std::string OneLine(std::string_view text);

}  // namespace mge
