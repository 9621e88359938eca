// SPDX-License-Identifier: Apache-2.0
#include "core/text/library.h"

#include <utility>

#include "core/text/file_tokenizer.h"
#include "mge/mge.h"

namespace mge::text {
namespace {

Failure FailureOf(const absl::Status& status) {
  return {.id = ErrorId(status), .title = ErrorTitle(status), .parts = PartsOf(status)};
}

class LibraryTokenizer : public Tokenizer {
 public:
  explicit LibraryTokenizer(std::unique_ptr<FileTokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  Failure Encode(std::string_view text, bool special, std::vector<int64_t>& ids) override {
    const absl::StatusOr<std::vector<int64_t>> out = tokenizer_->Encode(text, special);
    if (!out.ok()) return FailureOf(out.status());
    ids.insert(ids.end(), out->begin(), out->end());
    return {};
  }
  Failure Decode(const std::vector<int64_t>& ids, std::string& text) override {
    absl::StatusOr<std::string> out = tokenizer_->Decode(ids);
    if (!out.ok()) return FailureOf(out.status());
    text = *std::move(out);
    return {};
  }

 private:
  const std::unique_ptr<FileTokenizer> tokenizer_;
};

Failure Open(std::string_view json, std::unique_ptr<Tokenizer>& out) {
  absl::StatusOr<std::unique_ptr<FileTokenizer>> tokenizer = FileTokenizer::Parse(json);
  if (!tokenizer.ok()) return FailureOf(tokenizer.status());
  out = std::make_unique<LibraryTokenizer>(*std::move(tokenizer));
  return {};
}

constexpr Library kLibrary = {.version = MGE_VERSION, .open = Open};

}  // namespace
}  // namespace mge::text

extern "C" __attribute__((visibility("default"))) const mge::text::Library* mge_text_library() {
  return &mge::text::kLibrary;
}
