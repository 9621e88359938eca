// SPDX-License-Identifier: Apache-2.0
#include "core/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "core/text/unicode.h"

namespace mge::text {
namespace {

// Returns the beginning of the blanks at the end of the text.
size_t BeginOfTrailingBlanks(std::string_view text) {
  for (size_t end = text.size(); end > 0;) {
    const size_t last = BeginOfLast(text.substr(0, end));
    if (!IsWhitespace(CharacterAt(text.substr(last)))) return end;
    end = last;
  }
  return 0;
}

size_t BytesOfLeadingBlanks(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && IsWhitespace(CharacterAt(text.substr(at)))) at += BytesOfCharacter(text[at]);
  return at;
}

bool EndsWithWord(std::string_view text) {
  return !text.empty() && IsWordCharacter(CharacterAt(text.substr(BeginOfLast(text))));
}

bool BeginsWithWord(std::string_view text) { return !text.empty() && IsWordCharacter(CharacterAt(text)); }

}  // namespace

void AddedTokens::Finder::Add(Added added) {
  if (added.content.empty()) return;
  std::vector<Added>& all = tokens_[added.content[0]];
  const auto shorter = [&](const Added& other) { return other.content.size() < added.content.size(); };
  all.insert(std::ranges::find_if(all, shorter), std::move(added));
}

const AddedTokens::Added* AddedTokens::Finder::At(std::string_view text) const {
  const auto found = tokens_.find(text[0]);
  if (found == tokens_.end()) return nullptr;
  for (const Added& added : found->second) {
    if (text.starts_with(added.content)) return &added;
  }
  return nullptr;
}

void AddedTokens::Finder::Cut(const Piece& piece, Pieces& out) const {
  const std::string_view text = piece.text;
  size_t done = 0;  // the end of the last token
  const auto add = [&](size_t begin, size_t end, int64_t id) {
    if (begin < end) out.push_back({std::string(text.substr(begin, end - begin)), piece.at_start && begin == 0, id});
  };
  for (size_t at = 0; at < text.size();) {
    const Added* added = At(text.substr(at));
    if (!added) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + added->content.size();
    at = end;
    if (begin < done) continue;  // a token of blanks, which belong to the one before
    if (added->single_word && (EndsWithWord(text.substr(0, begin)) || BeginsWithWord(text.substr(end)))) continue;
    if (added->left) begin = std::max(done, BeginOfTrailingBlanks(text.substr(0, begin)));
    if (added->right) end += BytesOfLeadingBlanks(text.substr(end));
    add(done, begin, -1);
    add(begin, end, added->id);
    done = end;
  }
  add(done, text.size(), -1);
}

AddedTokens AddedTokens::Read(const Part& part, const Model& model, const Normalizer* normalizer) {
  AddedTokens out;
  int64_t next = model.vocabulary().size();
  std::unordered_set<std::string> contents;
  for (const Part& each : part.Elements()) {
    Added added = {.content = each.Text("content"),
                   .id = 0,
                   .single_word = each.Flag("single_word", false),
                   .left = each.Flag("lstrip", false),
                   .right = each.Flag("rstrip", false)};
    const bool special = each.Flag("special", false), normalized = each.Flag("normalized", !special);
    // A token of the vocabulary keeps its id. The others are numbered in order; the ids in the file are not used.
    added.id = model.vocabulary().Id(added.content);
    if (added.content.empty() || !contents.insert(added.content).second) continue;
    if (added.id < 0) added.id = next;
    next = std::max(next, added.id + 1);
    if (special) out.special_.insert(added.content);
    if (normalized && normalizer && !normalizer->Apply(added.content).ok()) each.Refuse("a text that can be normalized");
    out.tokens_[added.id] = added.content;
    (normalized ? out.normalized_ : out.raw_).Add(std::move(added));
  }
  return out;
}

absl::StatusOr<Pieces> AddedTokens::Cut(std::string_view text, const Normalizer* normalizer) const {
  Pieces raw, out;
  raw_.Cut({std::string(text), true}, raw);
  for (Piece& piece : raw) {
    if (piece.id >= 0) {
      out.push_back(std::move(piece));
      continue;
    }
    if (normalizer) MGE_RETURN_IF_ERROR(normalizer->Apply(piece.text));
    normalized_.Cut(piece, out);
  }
  return out;
}

const std::string* AddedTokens::Token(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace mge::text
