// SPDX-License-Identifier: Apache-2.0
// Regular expressions that cut texts into tokens. A pattern is a sequence of characters, classes such as [a-z_] or \w, and
// word boundaries \b, each with an optional +, *, ? or {m,n}. Groups and alternatives are not supported. The time of a search
// is bounded for every pattern, because models are not trusted.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace mge {

// The code points of a text, and the offset in bytes of each; the last offset is the size of the text.
struct CodePoints {
  std::vector<uint32_t> values;
  std::vector<size_t> offsets;
};
// Fails with kInvalidNode if the text is not valid UTF-8.
absl::StatusOr<CodePoints> ToCodePoints(std::string_view text);

class TokenPattern {
 public:
  // Fails with kUnsupportedFeature.
  static absl::StatusOr<TokenPattern> Parse(std::string_view text);

  // Returns the first and last + 1 code point of all matches that are not empty, from left to right.
  std::vector<std::pair<size_t, size_t>> FindAll(const std::vector<uint32_t>& text) const;

 private:
  struct Atom {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;  // both ends included
    bool negated = false;                               // any code point that is not in the ranges
    bool boundary = false;  // a place between a word character and another one; takes no code point
    int least = 1, most = 1;
  };
  class Search;
  std::vector<Atom> atoms_;
};

}  // namespace mge
