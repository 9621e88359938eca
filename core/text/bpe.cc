// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: a piece begins as characters, and the pair that was learned first is joined until no pair is known.
#include <algorithm>
#include <queue>
#include <utility>

#include "core/text/model.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

// A token of the piece. Joined tokens leave an empty one, whose neighbours are linked.
struct Symbol {
  int64_t id;
  int before, after;  // -1: none
  bool removed = false;
};

// Two neighbours that may be joined.
struct Join {
  int64_t rank;
  int at;  // the first one
  int64_t id;
  bool operator>(const Join& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
};

class Bpe : public Model {
 public:
  Bpe(Vocabulary vocabulary, const Part& part)
      : Model(std::move(vocabulary)),
        prefix_(part.Text("continuing_subword_prefix")),
        suffix_(part.Text("end_of_word_suffix")),
        fuse_unknown_(part.Flag("fuse_unk", false)),
        byte_fallback_(part.Flag("byte_fallback", false)),
        ignore_merges_(part.Flag("ignore_merges", false)) {
    names_unknown_ = part.Has("unk_token");
    if (names_unknown_) unknown_ = vocabulary_.Id(part.Text("unk_token"));
  }

  // Adds a pair with the next rank. Returns false if one of its tokens, or both together, are not in the vocabulary.
  bool AddMerge(std::string_view first, std::string_view second) {
    const int64_t a = vocabulary_.Id(first), b = vocabulary_.Id(second);
    if (second.size() < prefix_.size()) return false;
    const int64_t id = vocabulary_.Id(std::string(first) + std::string(second.substr(prefix_.size())));
    if (a < 0 || b < 0 || id < 0) return false;
    merges_[Key(a, b)] = {static_cast<int64_t>(ranks_++), id};
    return true;
  }

  absl::Status Tokenize(std::string_view piece, std::vector<int64_t>& ids) const override {
    if (ignore_merges_) {
      if (const int64_t id = vocabulary_.Id(piece); id >= 0) return ids.push_back(id), absl::OkStatus();
    }
    std::vector<int64_t> symbols;
    if (!SplitCharacters(piece, symbols)) return NoToken(piece);
    JoinPairs(symbols, ids);
    return absl::OkStatus();
  }

 private:
  struct Merge {
    int64_t rank, id;
  };

  static uint64_t Key(int64_t a, int64_t b) { return static_cast<uint64_t>(a) << 32 | static_cast<uint64_t>(b); }

  // Appends the tokens of the single characters. Without a name of a token for unknown ones, those are left out. Returns false if there is a
  // name, but no such token.
  bool SplitCharacters(std::string_view piece, std::vector<int64_t>& out) const {
    bool complete = true;
    bool unknown_before = false;  // of the last character, not yet added
    ForEachCharacter(piece, [&](uint32_t, std::string_view bytes) {
      std::string text(bytes);
      if (bytes.data() != piece.data()) text = prefix_ + text;
      if (bytes.data() + bytes.size() == piece.data() + piece.size()) text += suffix_;
      if (const int64_t id = vocabulary_.Id(text); id >= 0) {
        if (unknown_before) out.push_back(unknown_);
        unknown_before = false;
        out.push_back(id);
        return;
      }
      if (byte_fallback_ && vocabulary_.AppendBytes(text, out)) return;
      complete &= unknown_ >= 0 || !names_unknown_;
      if (unknown_ < 0) return;
      if (unknown_before && !fuse_unknown_) out.push_back(unknown_);
      unknown_before = true;
    });
    if (unknown_before) out.push_back(unknown_);
    return complete;
  }

  void JoinPairs(const std::vector<int64_t>& tokens, std::vector<int64_t>& ids) const {
    std::vector<Symbol> symbols;
    const auto count = static_cast<int>(tokens.size());
    for (int i = 0; i < count; ++i) symbols.push_back({tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    std::priority_queue<Join, std::vector<Join>, std::greater<>> queue;
    const auto offer = [&](int at) {
      if (at < 0 || symbols[static_cast<size_t>(at)].after < 0) return;
      const Symbol& first = symbols[static_cast<size_t>(at)];
      const auto found = merges_.find(Key(first.id, symbols[static_cast<size_t>(first.after)].id));
      if (found != merges_.end()) queue.push({found->second.rank, at, found->second.id});
    };
    for (int i = 0; i < count; ++i) offer(i);
    while (!queue.empty()) {
      const Join join = queue.top();
      queue.pop();
      Symbol& first = symbols[static_cast<size_t>(join.at)];
      if (first.removed || first.after < 0) continue;
      Symbol& second = symbols[static_cast<size_t>(first.after)];
      const auto found = merges_.find(Key(first.id, second.id));
      if (found == merges_.end() || found->second.id != join.id) continue;  // one of them was joined with another
      first.id = join.id;
      first.after = second.after;
      second.removed = true;
      if (first.after >= 0) symbols[static_cast<size_t>(first.after)].before = join.at;
      offer(first.before);
      offer(join.at);
    }
    for (const Symbol& symbol : symbols) {
      if (!symbol.removed) ids.push_back(symbol.id);
    }
  }

  const std::string prefix_, suffix_;
  const bool fuse_unknown_, byte_fallback_, ignore_merges_;
  bool names_unknown_;
  std::unordered_map<uint64_t, Merge> merges_;
  size_t ranks_ = 0;
};

// Reads "a b" or ["a", "b"].
std::pair<std::string, std::string> ReadPair(const Part& part) {
  if (part.json().is_array() && part.json().size() == 2) {
    const std::vector<Part> both = part.Elements();
    return {both[0].AsText(), both[1].AsText()};
  }
  const std::string text = part.AsText();
  const size_t blank = text.find(' ');
  if (blank == text.npos || text.find(' ', blank + 1) != text.npos) part.Refuse("a pair of tokens");
  return blank == text.npos ? std::pair(text, std::string()) : std::pair(text.substr(0, blank), text.substr(blank + 1));
}

}  // namespace

std::unique_ptr<Model> ReadBpe(const Part& part) {
  if (part.Has("dropout") && part.Member("dropout").AsNumber() > 0) part.RefuseKind("a model BPE with dropout");
  auto out = std::make_unique<Bpe>(Vocabulary::Read(part.Member("vocab")), part);
  for (const Part& merge : part.Elements("merges")) {
    const auto [first, second] = ReadPair(merge);
    if (!part.status().ok()) return nullptr;
    if (!out->AddMerge(first, second)) merge.Refuse("a pair of tokens of the vocabulary");
  }
  return out;
}

}  // namespace mge::text
