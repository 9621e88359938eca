// SPDX-License-Identifier: Apache-2.0
// Patterns that split texts: a literal text, a regular expression, or a property of characters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/text/json_part.h"

namespace mge::text {

// A part of a text: a match, or what lies between matches.
struct Span {
  size_t begin, end;  // in bytes
  bool match;
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Returns spans that cover the text, in order. Fails with kLimit if the search takes too long.
  virtual absl::StatusOr<std::vector<Span>> Find(std::string_view text) const = 0;
};

std::unique_ptr<Pattern> Literal(std::string text);
// Each character with the property is a match.
std::unique_ptr<Pattern> Characters(std::function<bool(uint32_t)> property);
// A regular expression in the syntax of Oniguruma, which tokenizer.json uses. Fails with kUnsupportedFeature, without a place, if ICU cannot
// compile it.
absl::StatusOr<std::unique_ptr<Pattern>> Regex(std::string_view expression);
// Reads {"String": ...} or {"Regex": ...}. Returns null if it fails; the part's status says why.
std::unique_ptr<Pattern> ReadPattern(const Part& part);

// The treatment of matches in a split.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
// Reads the name of a behavior, which must be there unless there is a default.
Behavior ReadBehavior(const Part& part, const char* key, const char* fallback = "");

// Returns the ranges that remain: without the removed matches, each match joined with its neighbour as `behavior` says.
std::vector<Span> Cut(const std::vector<Span>& spans, Behavior behavior);
// Replaces each match.
absl::Status Replace(const Pattern& pattern, std::string_view content, std::string& text);

}  // namespace mge::text
