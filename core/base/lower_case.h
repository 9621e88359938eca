// SPDX-License-Identifier: Apache-2.0
// Lower case, for comparisons that ignore the case of ASCII letters.
#pragma once

#include <string>
#include <string_view>

namespace mge {

// Returns the text with the letters A to Z in lower case, in any locale.
inline std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace mge
