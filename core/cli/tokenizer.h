// SPDX-License-Identifier: Apache-2.0
// Texts of language models: the tokenizer of a folder, and the text of tokens that come one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/text/library.h"

namespace mge::cli {

// Opens libmge_text.so, which stays open, and reads tokenizer.json of the folder. Fails with kUnsupportedFeature if the library is not
// installed or does not know the tokenizer, and with kFileAccess.
absl::StatusOr<std::unique_ptr<text::Tokenizer>> OpenTokenizer(const std::string& folder);

// Returns the error of a call of the library, or an OK status.
absl::Status StatusOf(const text::Failure& failure);

// The text of tokens that come one by one. It ends before the first stop text, also if that crosses tokens.
class TextStream {
 public:
  // `prompt` are the tokens before the first one: the text of a token may depend on them. `tokenizer` must live as long as this object.
  TextStream(text::Tokenizer& tokenizer, const std::vector<int64_t>& prompt, std::vector<std::string> stops);

  // Adds a token, and appends the text that is complete with it: whole characters, which cannot be the beginning of a stop text.
  absl::Status Add(int64_t id, std::string& out);
  // Appends what was held back. Appends nothing if a stop text was found.
  absl::Status Finish(std::string& out);
  bool stopped() const { return stopped_; }  // a stop text was found

 private:
  absl::StatusOr<std::string> Pending();
  void Emit(std::string_view text, std::string& out);

  text::Tokenizer& tokenizer_;
  const std::vector<std::string> stops_;
  std::vector<int64_t> tokens_;  // the last ones
  size_t done_;                  // the first ones of tokens_, whose text was returned
  std::string held_;             // may be the beginning of a stop text
  bool stopped_ = false;
};

}  // namespace mge::cli
