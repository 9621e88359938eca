// SPDX-License-Identifier: Apache-2.0
// Decodes UTF-8, for the operators on strings.
#pragma once

#include <cstdint>
#include <string_view>

namespace mge {

// A code point and its length in bytes. The length is 0 if the text is not valid UTF-8.
struct CodePoint {
  uint32_t value = 0;
  int length = 0;
};

// Returns the first code point of a text, which must not be empty.
inline CodePoint DecodeUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  int length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || static_cast<int>(text.size()) < length) return {};
  uint32_t value = byte(0) & (0x7f >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, length};
}

}  // namespace mge
