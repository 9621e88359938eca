// SPDX-License-Identifier: Apache-2.0
// Regular expressions, over ICU. RE2 cannot serve: the expressions of GPT-2, Llama and Qwen look ahead.
#include <unicode/uregex.h>
#include <unicode/utext.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/errors.h"
#include "core/text/pattern.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

// A search ends after this many steps of ICU's engine, in units that take about a millisecond.
constexpr int32_t kTimeLimit = 2'000;

struct CloseRegex {
  void operator()(URegularExpression* regex) const { uregex_close(regex); }
};
struct CloseText {
  void operator()(UText* text) const { utext_close(text); }
};

// Classes that Oniguruma and ICU define differently, as sets of ICU.
constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
    {"\\s", "\\p{White_Space}"},
    {"\\S", "\\P{White_Space}"},
    {"\\w", "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}²³¹¼-¾]"},
    {"\\W", "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}²³¹¼-¾]"},
    {"\\h", "\\p{ASCII_Hex_Digit}"},
    {"\\H", "\\P{ASCII_Hex_Digit}"},
    {"[:punct:]", "[\\p{P}\\p{S}]"},
};

// Writes an expression of Oniguruma's syntax in ICU's.
std::string InSyntaxOfIcu(std::string_view expression) {
  std::string out;
  while (!expression.empty()) {
    const auto known = std::ranges::find_if(kClasses, [&](const auto& c) { return expression.starts_with(c.first); });
    const bool escaped = expression[0] == '\\' && expression.size() > 1;
    const size_t length = known != std::end(kClasses) ? known->first.size() : escaped ? 2 : 1;
    out += known != std::end(kClasses) ? known->second : expression.substr(0, length);
    expression.remove_prefix(length);
  }
  return out;
}

class RegexPattern : public Pattern {
 public:
  explicit RegexPattern(URegularExpression* regex) : regex_(regex) {}

  absl::StatusOr<std::vector<Span>> Find(std::string_view text) const override {
    UErrorCode error = U_ZERO_ERROR;
    const std::unique_ptr<UText, CloseText> input(
        utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error));
    uregex_setUText(regex_.get(), input.get(), &error);
    std::vector<Span> out;
    size_t before = 0;
    while (uregex_findNext(regex_.get(), &error)) {
      const auto begin = static_cast<size_t>(uregex_start64(regex_.get(), 0, &error));
      const auto end = static_cast<size_t>(uregex_end64(regex_.get(), 0, &error));
      if (before < begin) out.push_back({before, begin, false});
      out.push_back({begin, end, true});
      before = end;
    }
    if (U_FAILURE(error)) {
      return Fail(errors::kLimit, "the search for the tokenizer's regular expression takes too much time or memory",
                  {.what = fmt::format("ICU: {}, in a text of {} bytes", u_errorName(error), text.size()),
                   .fix = "shorten the text"});
    }
    if (before < text.size()) out.push_back({before, text.size(), false});
    return out;
  }

 private:
  const std::unique_ptr<URegularExpression, CloseRegex> regex_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pattern>> Regex(std::string_view expression) {
  const std::string translated = InSyntaxOfIcu(expression);
  UErrorCode error = U_ZERO_ERROR;
  UParseError place = {};
  const std::unique_ptr<UText, CloseText> input(
      utext_openUTF8(nullptr, translated.data(), static_cast<int64_t>(translated.size()), &error));
  // The signs ^ and $ match at each line, and a line ends with \n only, as in Oniguruma.
  URegularExpression* regex = uregex_openUText(input.get(), UREGEX_MULTILINE | UREGEX_UNIX_LINES, &place, &error);
  if (regex) uregex_setTimeLimit(regex, kTimeLimit, &error);
  std::unique_ptr<Pattern> out(regex ? new RegexPattern(regex) : nullptr);
  if (U_SUCCESS(error)) return out;
  return Fail(errors::kUnsupportedFeature, "a regular expression cannot be compiled",
              {.what = fmt::format("ICU: {} at character {} of '{}'", u_errorName(error), place.offset, translated)});
}

}  // namespace mge::text
