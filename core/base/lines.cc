// SPDX-License-Identifier: Apache-2.0
#include "core/base/lines.h"

#include <algorithm>

#include "core/base/status.h"

namespace mge {

std::vector<std::string_view> LinesOf(std::string_view text) {
  constexpr std::string_view kEnds = "\n\r", kBlanks = " \t";
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find_first_of(kEnds));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string OneLine(std::string_view text) {
  const auto is_word = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  const bool is_line = std::ranges::all_of(text, [&](unsigned char c) { return is_word(c) || c == ' '; });
  if (!text.empty() && is_line && is_word(text.front()) && is_word(text.back())) return std::string(text);
  std::string out;
  for (std::string_view line : LinesOf(text)) {
    if (!out.empty()) out += " | ";
    out += EscapeControl(line);
  }
  return out;
}

std::string WithoutControl(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return out;
}

std::string_view TakeUntil(std::string_view& rest, char end) {
  const size_t at = std::min(rest.find(end), rest.size());
  std::string_view out = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return out;
}

std::string CutLine(std::string_view line, size_t columns) {
  size_t count = 0, cut = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool continues = (line[i] & 0xC0) == 0x80;  // a later byte of a character
    if (continues) continue;
    if (count + 1 == columns) cut = i;
    if (++count > columns) return std::string(line.substr(0, cut)) + "…";
  }
  return std::string(line);
}

}  // namespace mge
