// SPDX-License-Identifier: Apache-2.0
#include "core/base/utf8.h"

namespace mge {

bool TakeUtf8(std::string_view* text, uint32_t* character) {
  auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>((*text)[i])); };
  if (text->empty()) return false;
  uint32_t lead = at(0);
  size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text->size()) return false;
  constexpr uint32_t kLeadMask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t c = lead & kLeadMask[length];
  for (size_t i = 1; i < length; ++i) {
    if (at(i) >> 6 != 2) return false;
    c = c << 6 | (at(i) & 0x3f);
  }
  if (c < kSmallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
  text->remove_prefix(length);
  *character = c;
  return true;
}

void AppendUtf8(uint32_t c, std::string& out) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

}  // namespace mge
