// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8 texts and their properties, over ICU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge::text {

// Calls `f(character, its bytes)` for each character of a valid text.
template <typename F>
void ForEachCharacter(std::string_view text, F f);

// Returns the number of bytes of the character that begins with this byte.
inline size_t BytesOfCharacter(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
uint32_t CharacterAt(std::string_view text);
size_t CountCharacters(std::string_view text);
// Returns where the last character begins. The text is not empty.
size_t BeginOfLast(std::string_view text);

bool IsValidUtf8(std::string_view text);
// Replaces each longest beginning of a character that is not complete by U+FFFD.
std::string ToValidUtf8(std::string_view bytes);

bool IsWhitespace(uint32_t c);   // the property White_Space
bool IsPunctuation(uint32_t c);  // a punctuation mark, or an ASCII character that is neither a letter, a digit nor a blank
bool IsNumber(uint32_t c);
bool IsMark(uint32_t c);            // a combining mark
bool IsNonspacingMark(uint32_t c);  // a combining mark without a width
bool IsControl(uint32_t c);         // a control, format or private character
bool IsWordCharacter(uint32_t c);   // \w of regular expressions
// Appends the small form of the character, which may be two characters.
void AppendLower(uint32_t c, std::string& out);

// The name of the character's script as a number: equal for equal scripts, and -1 for characters without one.
int ScriptOf(uint32_t c);

// The letter that stands for a byte in byte-level vocabularies: the byte itself if it is a visible character of Latin-1, else one from
// U+0100 on.
uint32_t LetterOfByte(unsigned char byte);
// Returns the byte that the letter stands for, or -1.
int ByteOfLetter(uint32_t c);

template <typename F>
void ForEachCharacter(std::string_view text, F f) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view bytes = text.substr(at, BytesOfCharacter(text[at]));
    f(CharacterAt(bytes), bytes);
    at += bytes.size();
  }
}

}  // namespace mge::text
