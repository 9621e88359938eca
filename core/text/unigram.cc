// SPDX-License-Identifier: Apache-2.0
// Unigram: each token has a score, and a piece becomes the tokens with the largest sum of scores.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "core/text/model.h"
#include "core/text/unicode.h"

namespace mge::text {
namespace {

constexpr double kUnknownPenalty = 10;  // an unknown character costs this more than the worst token

// A token of the vocabulary, sorted by its text.
struct Scored {
  std::string_view token;
  int64_t id;
  double score;
};

// Returns the number as the package reads its shortest decimal form: the digits as an integer, divided by a power of ten. This may round
// twice. Where two ways to cut a piece have equal scores, the last bit decides.
double AsPackageReads(double value) {
  constexpr int kMaxExact = 22;  // greater powers of ten are no exact double
  char text[64];
  const char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int places = 0, exponent = 0;
  const char* at = text;
  for (bool fraction = false; at < end && *at != 'e'; ++at) {
    if (*at >= '0' && *at <= '9') {
      digits = digits * 10 + static_cast<uint64_t>(*at - '0');
      places += fraction;
    }
    fraction |= *at == '.';
  }
  if (at == end) return value;
  std::from_chars(at[1] == '+' ? at + 2 : at + 1, end, exponent);
  exponent -= places;
  if (exponent > 0 || exponent < -kMaxExact) return value;
  double power = 1;
  for (int i = 0; i < -exponent; ++i) power *= 10;
  return std::copysign(static_cast<double>(digits) / power, value);
}

class Unigram : public Model {
 public:
  Unigram(Vocabulary vocabulary, const std::vector<double>& scores, bool byte_fallback, int64_t unknown)
      : Model(std::move(vocabulary)), byte_fallback_(byte_fallback) {
    unknown_ = unknown;
    double least = std::numeric_limits<double>::infinity();
    for (size_t id = 0; id < scores.size(); ++id) {
      least = std::min(least, scores[id]);
      const std::string* token = vocabulary_.Token(static_cast<int64_t>(id));
      if (token && !token->empty() && vocabulary_.Id(*token) == static_cast<int64_t>(id)) {
        sorted_.push_back({*token, static_cast<int64_t>(id), scores[id]});
      }
    }
    std::ranges::sort(sorted_, {}, &Scored::token);
    unknown_score_ = least - kUnknownPenalty;
  }

  absl::Status Tokenize(std::string_view piece, std::vector<int64_t>& ids) const override {
    const std::vector<Best> best = FindBest(piece);
    std::vector<std::string_view> tokens;  // from the last one to the first
    bool joins = false;                    // the last token is unknown: unknown neighbours are one
    for (size_t end = piece.size(); end > 0; end = best[end].begin) {
      const Best& node = best[end];
      if (node.id < 0) return NoToken(piece.substr(node.begin, end - node.begin));
      const bool unknown = node.id == unknown_;
      const std::string_view text = piece.substr(node.begin, end - node.begin);
      if (unknown && joins) {
        tokens.back() = std::string_view(text.data(), text.size() + tokens.back().size());
      } else {
        tokens.push_back(text);
      }
      joins = unknown;
    }
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
      const int64_t id = vocabulary_.Id(*token);
      if (id < 0 && byte_fallback_ && vocabulary_.AppendBytes(*token, ids)) continue;
      if (id < 0 && unknown_ < 0) return NoToken(*token);
      ids.push_back(id < 0 ? unknown_ : id);
    }
    return absl::OkStatus();
  }

 private:
  // The best tokens of the text up to a place: the last one's beginning, and the sum of scores.
  struct Best {
    double score = 0;
    size_t begin = 0;
    int64_t id = -1;
    bool reached = false;
  };

  std::vector<Best> FindBest(std::string_view piece) const {
    std::vector<Best> best(piece.size() + 1);
    for (size_t begin = 0; begin < piece.size();) {
      const double before = best[begin].score;
      const auto offer = [&](size_t end, int64_t id, double score) {
        if (best[end].reached && before + score <= best[end].score) return;
        best[end] = {before + score, begin, id, true};
      };
      const size_t length = BytesOfCharacter(piece[begin]);
      bool single = false;  // the character alone is a token
      ForEachToken(piece.substr(begin), [&](const Scored& token) {
        offer(begin + token.token.size(), token.id, token.score);
        single |= token.token.size() == length;
      });
      if (!single) offer(begin + length, unknown_, unknown_score_);
      begin += length;
    }
    return best;
  }

  // Calls `f` for each token that the text begins with, from the shortest one on.
  template <typename F>
  void ForEachToken(std::string_view text, F f) const {
    auto first = sorted_.begin(), last = sorted_.end();
    for (size_t i = 0; i < text.size() && first != last; ++i) {
      // All tokens of the range have the first i bytes of the text, and those without a further byte are in front.
      const auto byte = [i](const Scored& s) { return s.token.size() > i ? static_cast<unsigned char>(s.token[i]) : -1; };
      const int wanted = static_cast<unsigned char>(text[i]);
      first = std::partition_point(first, last, [&](const Scored& s) { return byte(s) < wanted; });
      last = std::partition_point(first, last, [&](const Scored& s) { return byte(s) == wanted; });
      if (first != last && first->token.size() == i + 1) f(*first);
    }
  }

  const bool byte_fallback_;
  std::vector<Scored> sorted_;
  double unknown_score_;
};

}  // namespace

std::unique_ptr<Model> ReadUnigram(const Part& part) {
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const Part& entry : part.Elements("vocab")) {
    const std::vector<Part> both = entry.Elements();
    if (both.size() != 2) {
      entry.Refuse("a token with its score");
      return nullptr;
    }
    vocabulary.Add(both[0].AsText(), static_cast<int64_t>(scores.size()));
    scores.push_back(AsPackageReads(both[1].AsNumber()));
  }
  const int64_t unknown = part.Count("unk_id", -1);
  if (unknown >= static_cast<int64_t>(scores.size())) part.Member("unk_id").Refuse("in the vocabulary");
  return std::make_unique<Unigram>(std::move(vocabulary), scores, part.Flag("byte_fallback", false), unknown);
}

}  // namespace mge::text
