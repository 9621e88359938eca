// SPDX-License-Identifier: Apache-2.0
#include "core/text/file_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/text/json_part.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

constexpr int kMaxDepth = 64;

absl::Status NotATokenizer(std::string what) {
  return Fail(errors::kConfigFile, "the file describes no tokenizer",
              {.what = std::move(what), .where = "tokenizer.json", .fix = "save the tokenizer again"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileTokenizer>> FileTokenizer::Parse(std::string_view json) {
  int deepest = 0;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth < kMaxDepth;
  };
  const Json all = Json::parse(json.begin(), json.end(), limit, false);
  if (deepest >= kMaxDepth) return NotATokenizer(fmt::format("it is nested deeper than {} levels", kMaxDepth));
  if (all.is_discarded() || !all.is_object()) return NotATokenizer("it is not a JSON object");
  absl::Status status;
  const Part file(all, "", status);
  if (!file.Has("model")) return NotATokenizer("it has no model");
  auto out = std::make_unique<FileTokenizer>();
  out->normalizer_ = ReadNormalizer(file.Member("normalizer"));
  out->pre_tokenizer_ = ReadPreTokenizer(file.Member("pre_tokenizer"));
  out->model_ = ReadModel(file.Member("model"));
  MGE_RETURN_IF_ERROR(status);
  out->added_ = AddedTokens::Read(file.Member("added_tokens"), *out->model_, out->normalizer_.get());
  out->around_ = ReadPostProcessor(file.Member("post_processor"));
  out->ReadTruncation(file.Member("truncation"));
  if (file.Has("padding")) {
    const Part padding = file.Member("padding");
    if (padding.Member("strategy").Has("Fixed") || padding.Count("pad_to_multiple_of", 0) > 1) {
      padding.RefuseKind("a padding of single texts");
    }
  }
  out->decoder_ = ReadDecoder(file.Member("decoder"));
  MGE_RETURN_IF_ERROR(status);
  return out;
}

void FileTokenizer::ReadTruncation(const Part& part) {
  if (part.json().is_null()) return;
  truncation_.max_ids = part.Count("max_length", 512);
  truncation_.keeps_end = part.Text("direction", "Right") == "Left";
}

absl::StatusOr<std::vector<int64_t>> FileTokenizer::Encode(std::string_view text, bool special) const {
  if (!IsValidUtf8(text)) {
    return Fail(errors::kApiMisuse, "the text is not valid UTF-8", {.fix = "use a terminal and files in UTF-8"});
  }
  MGE_ASSIGN_OR_RETURN(Pieces pieces, added_.Cut(text, normalizer_.get()));
  if (pre_tokenizer_) MGE_RETURN_IF_ERROR(pre_tokenizer_->Apply(pieces));
  std::vector<int64_t> ids;
  for (const Piece& piece : pieces) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else if (!piece.text.empty()) {
      MGE_RETURN_IF_ERROR(model_->Tokenize(piece.text, ids));
    }
  }
  static const AddedAround kNothing;
  const AddedAround& around = special ? around_ : kNothing;
  const auto added = static_cast<int64_t>(around.before.size() + around.after.size());
  if (truncation_.max_ids >= 0) {
    const auto kept = static_cast<size_t>(std::max<int64_t>(truncation_.max_ids - added, 0));
    if (ids.size() > kept && truncation_.keeps_end) ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(kept));
    if (ids.size() > kept) ids.resize(kept);
  }
  ids.insert(ids.begin(), around.before.begin(), around.before.end());
  ids.insert(ids.end(), around.after.begin(), around.after.end());
  return ids;
}

const std::string* FileTokenizer::TokenOf(int64_t id) const {
  const std::string* added = added_.Token(id);
  return added ? added : model_->vocabulary().Token(id);
}

absl::StatusOr<std::string> FileTokenizer::Decode(const std::vector<int64_t>& ids) const {
  std::vector<std::string> tokens;
  for (const int64_t id : ids) {
    const std::string* token = TokenOf(id);
    if (token && !added_.IsSpecial(*token)) tokens.push_back(*token);
  }
  if (decoder_) MGE_RETURN_IF_ERROR(decoder_->Apply(tokens));
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !decoder_) out += ' ';
    out += tokens[i];
  }
  return out;
}

}  // namespace mge::text
