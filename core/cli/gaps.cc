// SPDX-License-Identifier: Apache-2.0
#include "core/cli/gaps.h"

#include <charconv>

#include "fmt/format.h"

namespace mge::cli {
namespace {

// Removes the next word from the front of the line, with the blanks after it, and returns it.
std::string_view TakeWord(std::string_view& line) {
  size_t end = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  return word;
}

}  // namespace

bool ParseGaps(std::string_view text, std::vector<Gap>* out, std::string* error) {
  for (int number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    Gap gap;
    gap.path = TakeWord(line);
    std::string_view code = TakeWord(line);
    gap.reason = line;
    const char* last = code.data() + code.size();
    bool is_code = code.size() >= 5 && code[0] == 'E';
    if (is_code) {
      auto [stop, failure] = std::from_chars(code.data() + 1, last, gap.error);
      is_code = failure == std::errc() && stop == last;
    }
    if (gap.path.empty() || !is_code || gap.reason.empty()) {
      *error = fmt::format("line {} is not \"PATH ERROR REASON\" with an error such as E0801", number);
      return false;
    }
    for (const Gap& other : *out) {
      if (other.path != gap.path) continue;
      *error = fmt::format("line {}: '{}' is listed twice", number, gap.path);
      return false;
    }
    out->push_back(std::move(gap));
  }
  return true;
}

const Gap* FindGap(const std::vector<Gap>& gaps, std::string_view folder) {
  for (const Gap& gap : gaps) {
    if (!folder.ends_with(gap.path)) continue;
    size_t before = folder.size() - gap.path.size();
    if (before == 0 || folder[before - 1] == '/') return &gap;
  }
  return nullptr;
}

}  // namespace mge::cli
