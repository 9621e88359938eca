// SPDX-License-Identifier: Apache-2.0
// A tokenizer that was read from tokenizer.json. It gives the ids that the Python package `tokenizers` gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/text/added_tokens.h"
#include "core/text/decoder.h"
#include "core/text/model.h"
#include "core/text/normalizer.h"
#include "core/text/post_processor.h"
#include "core/text/pre_tokenizer.h"

namespace mge::text {

// Used by one thread at a time.
class FileTokenizer {
 public:
  // Parses the file's text. Fails with kConfigFile if it is not such a file, and with kUnsupportedFeature for a part that is not known.
  static absl::StatusOr<std::unique_ptr<FileTokenizer>> Parse(std::string_view json);

  // Returns the ids of a text. Fails with kApiMisuse if it is not valid UTF-8, and like Pattern::Find() and Model::Tokenize().
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text, bool special) const;
  // Returns the text of tokens, without special and unknown ones.
  absl::StatusOr<std::string> Decode(const std::vector<int64_t>& ids) const;

 private:
  // The limit of the number of ids, which tokenizers of short texts have.
  struct Truncation {
    int64_t max_ids = -1;  // -1: no limit
    bool keeps_end = false;
  };
  void ReadTruncation(const Part& part);
  const std::string* TokenOf(int64_t id) const;

  std::unique_ptr<Normalizer> normalizer_;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer_;  // may be null
  std::unique_ptr<Model> model_;
  AddedTokens added_;
  AddedAround around_;
  Truncation truncation_;
  std::unique_ptr<Decoder> decoder_;  // may be null
};

}  // namespace mge::text
