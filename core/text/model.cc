// SPDX-License-Identifier: Apache-2.0
#include "core/text/model.h"

#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

// Older files do not name the kind of their model, but its members differ.
std::string KindOfModel(const Part& part) {
  if (part.Has("type")) return part.Text("type");
  if (part.Has("merges")) return "BPE";
  if (part.Has("max_input_chars_per_word")) return "WordPiece";
  return part.Member("vocab").json().is_array() ? "Unigram" : "WordLevel";
}

}  // namespace

Vocabulary Vocabulary::Read(const Part& part) {
  Vocabulary out;
  if (!part.json().is_object()) part.Refuse("an object of tokens with their ids");
  for (const auto& [token, id] : part.json().items()) {
    if (!part.json().is_object()) break;
    out.Add(token, part.Within(id).AsCount());
  }
  return out;
}

void Vocabulary::Add(std::string token, int64_t id) {
  const auto [place, added] = ids_.insert_or_assign(std::move(token), id);
  tokens_[id] = &place->first;
  ++size_;
}

int64_t Vocabulary::Id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const std::string* Vocabulary::Token(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

int64_t Vocabulary::IdOfByte(unsigned char byte) const { return Id(fmt::format("<0x{:02X}>", byte)); }

bool Vocabulary::AppendBytes(std::string_view bytes, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  for (const char byte : bytes) {
    ids.push_back(IdOfByte(static_cast<unsigned char>(byte)));
    if (ids.back() >= 0) continue;
    ids.resize(before);
    return false;
  }
  return true;
}

absl::Status Model::NoToken(std::string_view part) const {
  return Fail(errors::kNoResult, fmt::format("the tokenizer has no token for '{}'", part),
              {.what = "its vocabulary has no token for unknown texts", .where = "model of tokenizer.json"});
}

std::unique_ptr<Model> ReadModel(const Part& part) {
  const std::string kind = KindOfModel(part);
  if (kind == "BPE") return ReadBpe(part);
  if (kind == "Unigram") return ReadUnigram(part);
  if (kind == "WordPiece") return ReadWordPiece(part);
  if (kind == "WordLevel") return ReadWordLevel(part);
  part.RefuseKind(fmt::format("a model '{}'", kind));
  return nullptr;
}

}  // namespace mge::text
