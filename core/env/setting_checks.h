// SPDX-License-Identifier: Apache-2.0
// Checks of texts, for the member `check` of a row. The entries of a list are checked one by one. An empty text
// is not checked.
#pragma once

#include <string_view>

namespace mge {

bool IsAbsolutePath(std::string_view text);
bool IsIdentifierWord(std::string_view text);  // only letters, digits, `_`, `-` and `.`
bool IsReserve(std::string_view text);         // 0, 1, or b:BYTES
bool IsOperatorTuning(std::string_view text);  // 0, 1, or element types separated by commas
bool IsUrl(std::string_view text);             // begins with http://, https:// or file:///

}  // namespace mge
