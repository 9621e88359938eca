// SPDX-License-Identifier: Apache-2.0
// UTF-8, one character at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge {

// Takes one character from the front of `text`. False, and nothing taken, if the bytes there are no
// UTF-8: cut off, overlong, a surrogate, or beyond U+10FFFF.
bool TakeUtf8(std::string_view* text, uint32_t* character);

void AppendUtf8(uint32_t character, std::string& out);

}  // namespace mge
