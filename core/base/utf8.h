// SPDX-License-Identifier: Apache-2.0
// Decoding and encoding of single UTF-8 characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge {

// Removes one character from the front of `text`. Returns false, without a change, if the bytes there are
// not valid UTF-8: cut off, overlong, a surrogate, or beyond U+10FFFF.
bool TakeUtf8(std::string_view* text, uint32_t* character);

void AppendUtf8(uint32_t character, std::string& out);

}  // namespace mge
