// SPDX-License-Identifier: Apache-2.0
#include "core/text/unicode.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <array>
#include <unordered_map>

#include "core/base/utf8.h"

namespace mge::text {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

bool IsIn(uint32_t c, uint32_t categories) { return (U_MASK(u_charType(static_cast<UChar32>(c))) & categories) != 0; }

// Returns the number of bytes at the front that are the beginning of a character, at least 1. The bytes are not a whole character.
size_t BytesOfBrokenCharacter(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  if (first < 0xC2 || first > 0xF4) return 1;
  const size_t length = BytesOfCharacter(bytes[0]);
  // The second byte has a smaller range behind some first bytes: no overlong forms, no surrogates, no more than U+10FFFF.
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  size_t n = 1;
  while (n < length && n < bytes.size() && at(n) >= (n == 1 ? least : 0x80) && at(n) <= (n == 1 ? most : 0xBF)) ++n;
  return n;
}

std::array<uint32_t, 256> LettersOfBytes() {
  std::array<uint32_t, 256> out = {};
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool visible = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    out[b] = visible ? b : next++;
  }
  return out;
}

}  // namespace

uint32_t CharacterAt(std::string_view text) {
  uint32_t c = kReplacement;
  TakeUtf8(&text, &c);
  return c;
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

size_t BeginOfLast(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool IsValidUtf8(std::string_view text) {
  for (uint32_t c; !text.empty();) {
    if (!TakeUtf8(&text, &c)) return false;
  }
  return true;
}

std::string ToValidUtf8(std::string_view bytes) {
  std::string out;
  for (uint32_t c; !bytes.empty();) {
    if (TakeUtf8(&bytes, &c)) {
      AppendUtf8(c, out);
    } else {
      AppendUtf8(kReplacement, out);
      bytes.remove_prefix(BytesOfBrokenCharacter(bytes));
    }
  }
  return out;
}

bool IsWhitespace(uint32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE); }

bool IsPunctuation(uint32_t c) {
  const bool ascii = (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return ascii || IsIn(c, U_GC_P_MASK);
}

bool IsNumber(uint32_t c) { return IsIn(c, U_GC_N_MASK); }
bool IsMark(uint32_t c) { return IsIn(c, U_GC_M_MASK); }
bool IsNonspacingMark(uint32_t c) { return IsIn(c, U_GC_MN_MASK); }
bool IsControl(uint32_t c) { return IsIn(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK); }

bool IsWordCharacter(uint32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) ||
         IsIn(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_JOIN_CONTROL);
}

void AppendLower(uint32_t c, std::string& out) {
  if (c == 0x130) return static_cast<void>(out += "i\xCC\x87");  // the only character whose small form is two
  AppendUtf8(static_cast<uint32_t>(u_tolower(static_cast<UChar32>(c))), out);
}

int ScriptOf(uint32_t c) {
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &error);
  return U_FAILURE(error) || script == USCRIPT_UNKNOWN ? -1 : static_cast<int>(script);
}

uint32_t LetterOfByte(unsigned char byte) {
  static const std::array<uint32_t, 256> letters = LettersOfBytes();
  return letters[byte];
}

int ByteOfLetter(uint32_t c) {
  static const std::unordered_map<uint32_t, int> bytes = [] {
    std::unordered_map<uint32_t, int> out;
    for (int b = 0; b < 256; ++b) out[LetterOfByte(static_cast<unsigned char>(b))] = b;
    return out;
  }();
  const auto found = bytes.find(c);
  return found == bytes.end() ? -1 : found->second;
}

}  // namespace mge::text
