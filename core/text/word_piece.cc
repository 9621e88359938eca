// SPDX-License-Identifier: Apache-2.0
// WordPiece: the longest token at the beginning of what remains of a piece. WordLevel: whole pieces.
#include <utility>

#include "core/text/model.h"
#include "core/text/unicode.h"

namespace mge::text {
namespace {

class WordPiece : public Model {
 public:
  WordPiece(Vocabulary vocabulary, const Part& part)
      : Model(std::move(vocabulary)),
        prefix_(part.Text("continuing_subword_prefix", "##")),
        max_characters_(part.Count("max_input_chars_per_word", 100)) {
    unknown_ = vocabulary_.Id(part.Text("unk_token", "[UNK]"));
  }

  absl::Status Tokenize(std::string_view piece, std::vector<int64_t>& ids) const override {
    const size_t before = ids.size();
    bool known = CountCharacters(piece) <= static_cast<size_t>(max_characters_);
    for (size_t begin = 0; known && begin < piece.size();) {
      size_t end = piece.size();
      int64_t id = -1;
      for (; end > begin; end = BeginOfLast(piece.substr(0, end))) {
        std::string text = begin > 0 ? prefix_ : std::string();
        id = vocabulary_.Id(text += piece.substr(begin, end - begin));
        if (id >= 0) break;
      }
      if ((known = id >= 0)) ids.push_back(id);
      begin = end;
    }
    if (known) return absl::OkStatus();
    ids.resize(before);
    if (unknown_ < 0) return NoToken(piece);
    ids.push_back(unknown_);
    return absl::OkStatus();
  }

 private:
  const std::string prefix_;
  const int64_t max_characters_;
};

class WordLevel : public Model {
 public:
  WordLevel(Vocabulary vocabulary, const Part& part) : Model(std::move(vocabulary)) {
    unknown_ = vocabulary_.Id(part.Text("unk_token", "<unk>"));
  }

  absl::Status Tokenize(std::string_view piece, std::vector<int64_t>& ids) const override {
    const int64_t id = vocabulary_.Id(piece);
    if (id < 0 && unknown_ < 0) return NoToken(piece);
    ids.push_back(id < 0 ? unknown_ : id);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Model> ReadWordPiece(const Part& part) {
  return std::make_unique<WordPiece>(Vocabulary::Read(part.Member("vocab")), part);
}

std::unique_ptr<Model> ReadWordLevel(const Part& part) {
  return std::make_unique<WordLevel>(Vocabulary::Read(part.Member("vocab")), part);
}

}  // namespace mge::text
