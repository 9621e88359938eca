// SPDX-License-Identifier: Apache-2.0
// Words in the names of inputs. They decide which generated values suit an input.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace mge {

inline bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.find(w) != text.npos; });
}

}  // namespace mge
