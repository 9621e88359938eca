// SPDX-License-Identifier: Apache-2.0
// Added tokens: texts that are found before the model sees a text, such as <|user|>.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/status.h"
#include "core/text/json_part.h"
#include "core/text/model.h"
#include "core/text/normalizer.h"
#include "core/text/pieces.h"

namespace mge::text {

class AddedTokens {
 public:
  // Reads the list `added_tokens`. `normalizer` may be null.
  static AddedTokens Read(const Part& part, const Model& model, const Normalizer* normalizer);

  // Cuts a text at the added tokens, and normalizes what is between them.
  absl::StatusOr<Pieces> Cut(std::string_view text, const Normalizer* normalizer) const;

  const std::string* Token(int64_t id) const;
  bool IsSpecial(const std::string& token) const { return special_.contains(token); }

 private:
  struct Added {
    std::string content;
    int64_t id;
    bool single_word, left, right;  // it is no part of a word; blanks to its left and right belong to it
  };
  // Tokens by their first byte, the longest ones first.
  class Finder {
   public:
    void Add(Added added);
    // Appends the parts of a piece, some of which are added tokens.
    void Cut(const Piece& piece, Pieces& out) const;

   private:
    const Added* At(std::string_view text) const;
    std::unordered_map<char, std::vector<Added>> tokens_;
  };

  Finder raw_, normalized_;  // sought before and after the text is normalized
  std::unordered_map<int64_t, std::string> tokens_;
  std::unordered_set<std::string> special_;
};

}  // namespace mge::text
