// SPDX-License-Identifier: Apache-2.0
// Rules on text that a row may name as its `check`. A list is checked entry by entry; an empty text
// is never checked.
#pragma once

#include <string_view>

namespace mge {

bool IsAbsolutePath(std::string_view text);
bool IsIdentifierWord(std::string_view text);  // letters, digits, `_`, `-`, `.`
bool IsReserve(std::string_view text);         // 0, 1, or b:BYTES
bool IsOperatorTuning(std::string_view text);  // 0, 1, or element types separated by commas
bool IsUrl(std::string_view text);             // http://, https:// or file:///

}  // namespace mge
